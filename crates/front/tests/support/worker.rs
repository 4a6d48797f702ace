//! The worker's end of a ring, in the hands of a test.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use highball_ring::env_keys::{KEYS, OTHER};
use highball_ring::frame::{Header, Kind, MAX_PAYLOAD};
use highball_ring::request::{Fields, Fixed, BODY_INLINE, BODY_SPOOLED, FIXED_BYTES};
use highball_ring::worker::Room;
use highball_ring::{Ticket, WorkerFds, WorkerRing};

use super::{Client, PATIENCE};

/// A worker that does what the test says.
pub(crate) struct FakeWorker {
    pub(crate) number: u32,
    pub(crate) ring: Arc<WorkerRing>,
    /// The ring's memory, for tests that misuse it.
    pub(crate) memory: OwnedFd,
    /// Files of spooled bodies that came before their requests were asked for, by position.
    spooled: Arc<Mutex<BTreeMap<u64, File>>>,
}

impl FakeWorker {
    pub(crate) fn new(number: u32, fds: WorkerFds) -> FakeWorker {
        let ring = WorkerRing::open(fds.memory.as_fd(), fds.wake_front, fds.descriptors).unwrap();
        FakeWorker { number, ring: Arc::new(ring), memory: fds.memory, spooled: Arc::default() }
    }

    /// Begins the next request, if there is one.
    pub(crate) fn try_claim(&self) -> Option<Job> {
        let Ticket { slot, position } = self.ring.claim()?;
        Some(Job::begin(Arc::clone(&self.ring), &self.spooled, slot, position))
    }

    /// Begins the next request, sleeping as a worker's thread does.
    pub(crate) fn claim(&self) -> Job {
        self.claim_within(PATIENCE).expect("a request to claim")
    }

    /// Answers the next request with this text, and this client gets it.
    pub(crate) fn answers(&self, client: &mut Client, text: &str) {
        self.claim().answer(text);
        assert_eq!(client.answer().text(), text);
    }

    pub(crate) fn claim_within(&self, time: Duration) -> Option<Job> {
        let deadline = Instant::now() + time;
        loop {
            // A request that is found only when the time is over has woken no thread.
            let left = deadline.checked_duration_since(Instant::now())?;
            if let Some(job) = self.try_claim() {
                return Some(job);
            }
            if let Some(seen) = self.ring.announce_sleep() {
                self.ring.sleep(seen, Some(left));
                self.ring.awake();
            }
        }
    }

    /// Serves with this number of threads until the result is dropped.
    pub(crate) fn serve(self, threads: usize, answer: impl Fn(Job) + Send + Sync + 'static) -> Serving {
        let (worker, answer) = (Arc::new(self), Arc::new(answer));
        let (stop, claiming) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(())));
        let serve = |_| {
            let (worker, answer) = (Arc::clone(&worker), Arc::clone(&answer));
            let (stop, claiming) = (Arc::clone(&stop), Arc::clone(&claiming));
            std::thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let claimed = {
                        let _gvl = claiming.lock().unwrap();
                        worker.try_claim()
                    };
                    if let Some(job) = claimed {
                        answer(job);
                    } else if let Some(seen) = worker.ring.announce_sleep() {
                        worker.ring.sleep(seen, None);
                        worker.ring.awake();
                    }
                }
            })
        };
        let threads = (0..threads).map(serve).collect();
        Serving { worker, stop, threads }
    }
}

/// A worker that serves on its own threads.
pub(crate) struct Serving {
    pub(crate) worker: Arc<FakeWorker>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            while !thread.is_finished() && !std::thread::panicking() {
                self.worker.ring.interrupt();
                std::thread::yield_now();
            }
        }
    }
}

/// A request that the worker has begun.
pub(crate) struct Job {
    ring: Arc<WorkerRing>,
    pub(crate) slot: u16,
    pub(crate) position: u64,
    written: u32,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
    pub(crate) spooled: bool,
}

impl Job {
    fn begin(ring: Arc<WorkerRing>, spooled: &Mutex<BTreeMap<u64, File>>, slot: u16, position: u64) -> Job {
        // SAFETY: the slot was just claimed, and its answer not begun.
        #[allow(unsafe_code)]
        let area = unsafe { ring.request(slot) };
        let fixed = Fixed::decode(area[..FIXED_BYTES].try_into().unwrap());
        let (head, rest) = area.split_at(fixed.head_bytes as usize);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let env = Fields::new(&head[FIXED_BYTES..]).map(|field| {
            let name =
                if field.key == OTHER { text(field.name) } else { KEYS[usize::from(field.key)].into() };
            (name, text(field.value))
        });
        let env = env.collect();
        let mut body = Vec::new();
        if fixed.flags & BODY_INLINE != 0 {
            body.extend_from_slice(&rest[..fixed.body_bytes as usize]);
        }
        let is_spooled = fixed.flags & BODY_SPOOLED != 0;
        if is_spooled {
            let mut files = spooled.lock().unwrap();
            while let Some((ticket, file)) = ring.receive_descriptor().unwrap() {
                files.insert(ticket.position, file.into());
            }
            files.remove(&position).expect("the file of a spooled body").read_to_end(&mut body).unwrap();
            assert_eq!(body.len() as u64, fixed.body_bytes);
        }
        Job { ring, slot, position, written: 0, env, body, spooled: is_spooled }
    }

    pub(crate) fn path(&self) -> &str {
        &self.env["PATH_INFO"]
    }

    /// Answers 200 with this text, all at once.
    pub(crate) fn answer(self, text: &str) {
        self.answer_bytes(text.as_bytes());
    }

    pub(crate) fn answer_bytes(mut self, body: &[u8]) {
        let mut bytes = head(200, &[]);
        body.chunks(MAX_PAYLOAD).for_each(|piece| bytes.extend(frame(Kind::Body, piece)));
        bytes.extend(frame(Kind::End, b""));
        self.write(&bytes, WorkerRing::publish_end);
    }

    pub(crate) fn head(&mut self, status: u16, fields: &[(&str, &str)]) -> &mut Job {
        self.raw(&head(status, fields))
    }

    pub(crate) fn body(&mut self, bytes: &[u8]) -> &mut Job {
        for piece in bytes.chunks(MAX_PAYLOAD) {
            self.raw(&frame(Kind::Body, piece));
        }
        self
    }

    pub(crate) fn end(&mut self) {
        self.write(&frame(Kind::End, b""), WorkerRing::publish_end);
    }

    pub(crate) fn abort(&mut self) {
        self.raw(&frame(Kind::Abort, b""));
    }

    pub(crate) fn file(&mut self, file: &File, offset: u64, length: u64) -> &mut Job {
        self.send_descriptor(file);
        self.raw(&frame(Kind::File, &[offset.to_le_bytes(), length.to_le_bytes()].concat()))
    }

    /// Takes the connection over: waits for the socket that the front sends.
    pub(crate) fn hijack(&mut self) -> UnixStream {
        self.raw(&frame(Kind::Hijack, b""));
        loop {
            let seen = self.ring.announce_wait_for_descriptor(self.slot);
            if let Some((ticket, socket)) = self.ring.receive_descriptor().unwrap() {
                assert_eq!((ticket.slot, ticket.position), (self.slot, self.position));
                return socket.into();
            }
            self.ring.sleep_for_room(self.slot, seen);
        }
    }

    /// Frees the place of an answer that goes on, once the front has offered a socket for the rest: a packet is a frame.
    pub(crate) fn leave(mut self) -> OwnedFd {
        loop {
            if let Some((ticket, socket)) = self.ring.receive_descriptor().unwrap() {
                assert_eq!((ticket.slot, ticket.position), (self.slot, self.position));
                self.write(&frame(Kind::Stream, b""), WorkerRing::publish_end);
                return socket;
            }
            std::thread::yield_now();
        }
    }

    pub(crate) fn send_descriptor(&self, descriptor: impl AsFd) {
        let sent = self.ring.send_descriptor(self.slot, self.position, descriptor.as_fd()).unwrap();
        assert!(sent, "room for a descriptor");
    }

    /// Writes these bytes, waiting for room.
    pub(crate) fn raw(&mut self, bytes: &[u8]) -> &mut Job {
        self.write(bytes, WorkerRing::publish);
        self
    }

    /// Writes these bytes, waiting for room; `publish_last` makes the last ones visible.
    fn write(&mut self, bytes: &[u8], publish_last: fn(&WorkerRing, u16, u32)) {
        let mut rest = bytes;
        loop {
            let more = self.ring.write(self.slot, self.written, rest);
            rest = &rest[more..];
            self.written = self.written.wrapping_add(more as u32);
            let publish = if rest.is_empty() { publish_last } else { WorkerRing::publish };
            publish(&self.ring, self.slot, self.written);
            if rest.is_empty() {
                return;
            }
            if let Some(seen) = self.ring.announce_wait_for_room(self.slot, self.written) {
                self.ring.sleep_for_room(self.slot, seen);
            }
        }
    }

    /// Writes as many of these bytes as there is room for. Returns their number.
    pub(crate) fn try_raw(&mut self, bytes: &[u8]) -> usize {
        let more = self.ring.write(self.slot, self.written, bytes);
        self.written = self.written.wrapping_add(more as u32);
        self.ring.publish(self.slot, self.written);
        more
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.ring.room(self.slot, self.written) == Room::Cancelled
    }
}

/// A frame.
pub(crate) fn frame(kind: Kind, payload: &[u8]) -> Vec<u8> {
    assert!(payload.len() <= MAX_PAYLOAD);
    let header = Header { kind, length: payload.len() };
    [&header.encode()[..], payload].concat()
}

/// A `HEAD` frame.
pub(crate) fn head(status: u16, fields: &[(&str, &str)]) -> Vec<u8> {
    frame(Kind::Head, &head_payload(status, 0, fields))
}

pub(crate) fn head_payload(status: u16, flags: u8, fields: &[(&str, &str)]) -> Vec<u8> {
    let mut payload = status.to_le_bytes().to_vec();
    payload.extend_from_slice(&[flags, 0]);
    for (name, value) in fields {
        payload.extend_from_slice(&(name.len() as u16).to_le_bytes());
        payload.extend_from_slice(&(value.len() as u32).to_le_bytes());
        payload.extend_from_slice(name.as_bytes());
        payload.extend_from_slice(value.as_bytes());
    }
    payload
}
