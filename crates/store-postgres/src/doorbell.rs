//! Waking a holder at once when a command comes in, on whatever machine.
//!
//! Only a hint: polling stays the truth, so every failure here is ignored. One thread listens on a connection
//! of its own, which it makes again whenever it is lost; then it rings all bells, for what it may have missed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};
use std::time::Duration;

use chongming_core::IncarnationId;
use chongming_core::store::Doorbell;
use postgres::fallible_iterator::FallibleIterator;
use postgres::{Client, Config};

use crate::connection::quoted;
use crate::tls::Connector;

/// After so long without a call the server is asked whether it is still there.
const QUIET: Duration = Duration::from_secs(30);

/// First and longest pause before the connection is made again.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(10));

/// The bells of one store.
pub(crate) struct Doorbells {
    shared: Arc<Shared>,
    listener: Mutex<Option<Thread>>,
}

struct Shared {
    config: Config,
    connector: Connector,
    channel: String,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    bells: HashMap<IncarnationId, Vec<Doorbell>>,
    is_closed: bool,
}

impl Doorbells {
    /// `channel` is the one that commands are announced on, with their holder as payload.
    pub(crate) fn new(config: Config, connector: Connector, channel: String) -> Self {
        let connector = connector.patient();
        let shared = Shared { config, connector, channel, state: Mutex::default() };
        Self { shared: Arc::new(shared), listener: Mutex::default() }
    }

    pub(crate) fn subscribe(&self, holder: &IncarnationId, bell: Doorbell) {
        self.shared.state().bells.entry(holder.clone()).or_default().push(bell);
        let mut listener = self.listener.lock().unwrap_or_else(PoisonError::into_inner);
        if listener.is_none() {
            let shared = Arc::clone(&self.shared);
            let thread = thread::Builder::new().name("doorbell".to_owned());
            let started = thread.spawn(move || shared.listen());
            *listener = started.ok().map(|handle| handle.thread().clone());
        }
    }

    /// Is there a listener, who must be called once more before he notices the end?
    pub(crate) fn is_listening(&self) -> bool {
        self.listener.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Ends the listener, at the next call or after a while.
    pub(crate) fn silence(&self) {
        let bells = {
            let mut state = self.shared.state();
            state.is_closed = true;
            std::mem::take(&mut state.bells)
        };
        drop(bells); // outside of the lock: a bell may own anything
        if let Some(thread) = &*self.listener.lock().unwrap_or_else(PoisonError::into_inner) {
            thread.unpark();
        }
    }
}

impl Drop for Doorbells {
    fn drop(&mut self) {
        self.silence();
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_closed(&self) -> bool {
        self.state().is_closed
    }

    fn listen(&self) {
        let (shortest, longest) = PAUSES;
        let mut pause = shortest;
        while !self.is_closed() {
            if let Ok(mut client) = self.connect() {
                pause = shortest;
                self.ring_all();
                while self.hear(&mut client).is_ok() && !self.is_closed() {}
            }
            if !self.is_closed() {
                thread::park_timeout(pause);
                pause = (pause * 2).min(longest);
            }
        }
    }

    fn connect(&self) -> Result<Client, postgres::Error> {
        let mut client = self.config.connect(self.connector.clone())?;
        client.batch_execute(&format!("LISTEN {}", quoted(&self.channel)))?;
        Ok(client)
    }

    /// Rings for the next call; an error says that the connection is of no use any more.
    fn hear(&self, client: &mut Client) -> Result<(), postgres::Error> {
        let call = client.notifications().timeout_iter(QUIET).next()?;
        match call {
            Some(call) => self.ring(call.payload()),
            None => client.is_valid(QUIET)?,
        }
        Ok(())
    }

    fn ring(&self, holder: &str) {
        let bells = {
            let state = self.state();
            let of_holder = IncarnationId::new(holder).ok();
            of_holder.and_then(|holder| state.bells.get(&holder).cloned())
        };
        bells.iter().flatten().for_each(|bell| bell());
    }

    fn ring_all(&self) {
        let bells: Vec<Doorbell> = self.state().bells.values().flatten().cloned().collect();
        bells.iter().for_each(|bell| bell());
    }
}
