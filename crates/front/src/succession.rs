//! What goes from the front of the old server process to the front of the new one in a hot restart: the messages of all hubs, and
//! clients whose WebSockets are held. And back: what the new one publishes.
//!
//! In reading order: [`message`] (what they send) and [`wire`] (the socket between the two).
//!
//! The new process asks for the hubs before it accepts connections. From then on the old one publishes no message, so that the order of
//! messages stays. Once the new one accepts connections, clients follow one by one, each with its socket. Clients that can't, because of TLS
//! or HTTP/2, connect again one by one; until then, the old process sends them what the new one publishes. If anything fails, clients are
//! asked to connect again, as they are where the new process knows nothing of this.

pub(crate) mod message;
pub(crate) mod wire;
