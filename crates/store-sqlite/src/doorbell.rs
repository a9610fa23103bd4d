//! Waking a holder at once when a command comes in, also from another process.
//!
//! Only a hint: polling stays the truth, so every failure here is ignored. On Linux the bell is a datagram
//! socket with an abstract name, made of the database file's identity and the holder: nothing lies on the
//! disk, nothing can be stale, and any user who may write the database may ring. Elsewhere only stores of
//! the same object ring each other.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use chongming_core::IncarnationId;
use chongming_core::store::Doorbell;

/// The bells of one store.
pub(crate) struct Doorbells {
    /// The database file; `None` for one in memory.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "names the sockets on Linux"))]
    file: Option<PathBuf>,
    here: Mutex<HashMap<IncarnationId, Bells>>,
}

#[derive(Default)]
struct Bells {
    bells: Vec<Doorbell>,
    #[cfg(target_os = "linux")]
    _listener: Option<socket::Listener>,
}

impl Doorbells {
    pub(crate) fn new(path: Option<&Path>) -> Self {
        Self { file: path.map(Path::to_owned), here: Mutex::default() }
    }

    fn here(&self) -> MutexGuard<'_, HashMap<IncarnationId, Bells>> {
        self.here.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// To be called once the command is committed.
    pub(crate) fn ring(&self, holder: &IncarnationId) {
        let bells = self.here().get(holder).map(|here| here.bells.clone());
        match bells {
            Some(bells) => bells.iter().for_each(|bell| bell()),
            #[cfg(target_os = "linux")]
            None => self.file.iter().for_each(|file| socket::ring(file, holder)),
            #[cfg(not(target_os = "linux"))]
            None => {}
        }
    }

    pub(crate) fn subscribe(&self, holder: &IncarnationId, bell: Doorbell) {
        let mut here = self.here();
        let bells = here.entry(holder.clone()).or_default();
        #[cfg(target_os = "linux")]
        if bells._listener.is_none()
            && let Some(file) = &self.file
        {
            bells._listener = socket::Listener::start(file, holder, bell.clone());
        }
        bells.bells.push(bell);
    }

    /// Ends all listeners.
    pub(crate) fn silence(&self) {
        let bells = std::mem::take(&mut *self.here());
        drop(bells); // outside of the lock: a bell may own anything
    }
}

#[cfg(target_os = "linux")]
mod socket {
    use std::fs;
    use std::io;
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::fs::MetadataExt;
    use std::os::unix::net::{SocketAddr, UnixDatagram};
    use std::path::Path;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    use chongming_core::IncarnationId;
    use chongming_core::store::Doorbell;

    /// The same in every process, whatever path leads to the file.
    fn address(file: &Path, holder: &IncarnationId) -> io::Result<SocketAddr> {
        let (file, holder) = (fs::metadata(file)?, hash(holder.as_str()));
        let name = format!("chongming-task/{:x}-{:x}/{holder:016x}", file.dev(), file.ino());
        SocketAddr::from_abstract_name(name)
    }

    /// FNV-1a, because names of sockets are short: the same in every build of the program, unlike the
    /// standard library's hashes.
    fn hash(text: &str) -> u64 {
        text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
    }

    /// Rings whoever listens for the holder, in any process.
    pub(super) fn ring(file: &Path, holder: &IncarnationId) {
        let send = || -> io::Result<()> {
            let socket = UnixDatagram::unbound()?;
            socket.set_nonblocking(true)?;
            socket.send_to_addr(&[1], &address(file, holder)?).map(drop)
        };
        let _ = send(); // nobody listens, or its queue is full and it wakes anyway
    }

    /// A thread that rings a bell for each datagram, until this is dropped. Nobody waits for its end: the
    /// bell may need what the one who drops this holds.
    pub(super) struct Listener {
        stopped: Arc<AtomicBool>,
        address: SocketAddr,
    }

    impl Listener {
        pub(super) fn start(file: &Path, holder: &IncarnationId, bell: Doorbell) -> Option<Self> {
            let address = address(file, holder).ok()?;
            let socket = UnixDatagram::bind_addr(&address).ok()?;
            let stopped = Arc::new(AtomicBool::new(false));
            let stop = Arc::clone(&stopped);
            let listen = move || {
                while socket.recv(&mut [0; 1]).is_ok() && !stop.load(Ordering::Acquire) {
                    bell();
                }
            };
            thread::Builder::new().name("doorbell".to_owned()).spawn(listen).ok()?;
            Some(Self { stopped, address })
        }
    }

    impl Drop for Listener {
        fn drop(&mut self) {
            self.stopped.store(true, Ordering::Release);
            // A full queue wakes it, too.
            let _ = UnixDatagram::unbound().and_then(|socket| {
                socket.set_nonblocking(true)?;
                socket.send_to_addr(&[0], &self.address)
            });
        }
    }
}
