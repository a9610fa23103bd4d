//! Waking a holder at once when a command comes in, also from another process.
//!
//! Only a hint: polling stays the truth, so every failure here is ignored. On Linux the bell is a datagram
//! socket with an abstract name, made of the database file's identity and the holder: nothing lies on the
//! disk, nothing can be stale, and any user who may write the database may ring. Elsewhere only stores of
//! the same object ring each other.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use chongming_core::IncarnationId;
use chongming_core::store::Doorbell;

/// The bells of one store.
pub(crate) struct Doorbells {
    /// Identity of the database, the same for all processes; 0 for one in memory.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "names the sockets on Linux"))]
    database: u64,
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
        Self { database: path.map_or(0, identity), here: Mutex::default() }
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
            None if self.database != 0 => socket::ring(self.database, holder),
            None => {}
        }
    }

    pub(crate) fn subscribe(&self, holder: &IncarnationId, bell: Doorbell) {
        let mut here = self.here();
        let bells = here.entry(holder.clone()).or_default();
        #[cfg(target_os = "linux")]
        if bells._listener.is_none() && self.database != 0 {
            bells._listener = socket::Listener::start(self.database, holder, bell.clone());
        }
        bells.bells.push(bell);
    }

    /// Ends all listeners.
    pub(crate) fn silence(&self) {
        let bells = std::mem::take(&mut *self.here());
        drop(bells); // outside of the lock: a bell may own anything
    }
}

/// FNV-1a: the same in every build of the program, unlike the standard library's hashes.
fn hash(parts: &[&[u8]]) -> u64 {
    let bytes = parts.iter().flat_map(|part| part.iter());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// The file itself where the platform can tell, so that links and mounts do not matter.
fn identity(path: &Path) -> u64 {
    #[cfg(unix)]
    if let Ok(metadata) = std::fs::metadata(path) {
        use std::os::unix::fs::MetadataExt;
        return hash(&[&metadata.dev().to_be_bytes(), &metadata.ino().to_be_bytes()]);
    }
    hash(&[path.as_os_str().as_encoded_bytes()])
}

#[cfg(target_os = "linux")]
mod socket {
    use std::io;
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixDatagram};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    use chongming_core::IncarnationId;
    use chongming_core::store::Doorbell;

    fn address(database: u64, holder: &IncarnationId) -> io::Result<SocketAddr> {
        let holder = super::hash(&[holder.as_str().as_bytes()]);
        SocketAddr::from_abstract_name(format!("chongming-task/{database:016x}/{holder:016x}"))
    }

    /// Rings whoever listens for the holder, in any process.
    pub(super) fn ring(database: u64, holder: &IncarnationId) {
        let send = || -> io::Result<()> {
            let socket = UnixDatagram::unbound()?;
            socket.set_nonblocking(true)?;
            socket.send_to_addr(&[1], &address(database, holder)?).map(drop)
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
        pub(super) fn start(database: u64, holder: &IncarnationId, bell: Doorbell) -> Option<Self> {
            let address = address(database, holder).ok()?;
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
