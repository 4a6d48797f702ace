//! The TLS handshake of a connection: before its first request, in limited time. The exchange of keys and the signature take
//! 0.05 to 5 ms, by the kind of key. Threads of a pool compute them, unless all keys are quick and the event loop has time.

use std::future::{poll_fn, Future};
use std::io;
use std::pin::{pin, Pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{ready, Context, Poll};

use rustls::server::{Accepted, AcceptedAlert, Acceptor};
use rustls::{ServerConfig, ServerConnection};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::TcpStream;

use crate::https::Https;
use crate::shared::{Counted, Leaving, Shared};
use crate::transport::stream::{Peer, Stream};
use crate::transport::tls::clients::{shown_before, ClientProof, Demand, SharedProof};
use crate::transport::tls::stream::{flush_now, poll_flush, poll_receive, Socket, TlsStream};
use crate::transport::tls::{Alpn, Handshake, Tls};

use super::{asked_name, closing};

/// Most bytes of a client's beginning that are read at a time: what rustls takes at once.
const FIRST_BYTES: usize = 4096;

/// How a client begins at an address for HTTPS.
pub(super) enum Secured {
    /// With TLS, and this protocol within it.
    Tls(Stream, Alpn),
    /// With HTTP, as these bytes show. More may follow.
    PlainHttp(Stream, Vec<u8>),
}

/// Why there is no connection with TLS.
enum Failed {
    /// The client does not speak TLS, or has nothing in common with this server. It was sent an alert.
    Refused(String),
    /// It has not shown the certificate that it was asked for. It was sent an alert.
    Unproven(String),
    /// It took too long.
    TimedOut,
    /// Another connection has its place.
    Dismissed,
    /// Too many are computed.
    TooMany,
    /// The client has left.
    Gone,
}

/// Leads the handshake on a connection of which these bytes were received already. `None`: it has been closed.
pub(super) async fn secure(
    stream: Stream,
    received: Vec<u8>,
    peer: &mut Peer,
    shared: &Rc<Shared>,
    counted: &Counted,
) -> Option<Secured> {
    let (Stream::Tcp(tcp), Some(Https { tls, .. })) = (stream, &shared.https) else { return None };
    let mut client = Handshaking { tcp, tls: Arc::clone(tls), shared, counted, is_brief: true };
    let failed = match client.first_bytes(received).await {
        // TLS begins with another byte (22, RFC 8446 section 5.1) than requests do.
        Ok(received) if received[0].is_ascii_uppercase() => {
            tls.count(Handshake::Failed);
            return Some(Secured::PlainHttp(Stream::Tcp(client.tcp), received));
        }
        Ok(received) => client.lead(&received).await,
        Err(failed) => Err(failed),
    };
    let failed = match failed {
        Ok((connection, proof)) => {
            tls.count(Handshake::Completed);
            peer.is_tls = true;
            peer.proof = proof;
            let stream = TlsStream::new(client.tcp, connection);
            let alpn = stream.alpn();
            return Some(Secured::Tls(Stream::Tls(Box::new(stream)), alpn));
        }
        Err(failed) => failed,
    };
    tls.count(match &failed {
        Failed::TimedOut => Handshake::TimedOut,
        Failed::TooMany | Failed::Dismissed => Handshake::TurnedAway,
        Failed::Refused(_) | Failed::Unproven(_) | Failed::Gone => Handshake::Failed,
    });
    match failed {
        Failed::Refused(why) => {
            tracing::debug!(from = peer.remote_addr, why, "a TLS handshake has failed");
            closing::linger(&mut Stream::Tcp(client.tcp), shared, counted).await;
        }
        Failed::Unproven(why) => {
            let why =
                format!("its client has not shown a certificate that is valid (`tls_client_ca`): {why}");
            shared.client_refusals.note(&peer.remote_addr, &why);
            closing::linger(&mut Stream::Tcp(client.tcp), shared, counted).await;
        }
        Failed::TooMany => {
            let why = "too many TLS handshakes are under way (`max_tls_handshakes`)";
            shared.handshake_refusals.note(&peer.remote_addr, why);
        }
        Failed::TimedOut | Failed::Dismissed | Failed::Gone => {}
    }
    None
}

/// A client in its handshake.
struct Handshaking<'a> {
    tcp: TcpStream,
    tls: Arc<Tls>,
    shared: &'a Rc<Shared>,
    counted: &'a Counted,
    /// Whether the client decides little about how long its handshake is computed: it shows no certificates.
    is_brief: bool,
}

impl Handshaking<'_> {
    /// What the client begins with, at least a byte.
    async fn first_bytes(&mut self, received: Vec<u8>) -> Result<Vec<u8>, Failed> {
        // Another connection may take its place while it sends nothing, as if it were idle.
        self.counted.rest(self.shared.settings.tls.handshake_timeout);
        if !received.is_empty() {
            return Ok(received);
        }
        poll_fn(|context| self.poll_first(context)).await
    }

    fn poll_first(&mut self, context: &mut Context<'_>) -> Poll<Result<Vec<u8>, Failed>> {
        self.look_at_time(context)?;
        let mut scratch = self.shared.scratch.borrow_mut();
        let mut read = ReadBuf::new(&mut scratch[..FIRST_BYTES]);
        match ready!(Pin::new(&mut self.tcp).poll_read(context, &mut read)) {
            Ok(()) if !read.filled().is_empty() => Poll::Ready(Ok(read.filled().into())),
            _ => Poll::Ready(Err(Failed::Gone)),
        }
    }

    async fn lead(&mut self, received: &[u8]) -> Result<(ServerConnection, Option<SharedProof>), Failed> {
        let accepted = self.greeting(received).await?;
        if let Some(name) = accepted.client_hello().server_name() {
            self.await_certificate(name).await?;
        }
        let Some(demand) = self.tls.demand_of(&accepted.client_hello()) else {
            let config = Arc::clone(self.tls.config());
            return Ok((self.shake_hands(accepted, config).await?, None));
        };
        let config = demand.config().ok_or_else(|| Failed::Unproven("its authorities are unknown".into()))?;
        self.is_brief = false;
        let connection = self.shake_hands(accepted, Arc::clone(config)).await?;
        let proof = self.proof(&demand, &connection).await?;
        Ok((connection, Some(Rc::new(proof))))
    }

    /// What the client has proved. A session may be resumed after the certificate that it began with has expired.
    async fn proof(
        &self,
        demand: &Arc<Demand>,
        connection: &ServerConnection,
    ) -> Result<ClientProof, Failed> {
        if let Some(shown) = shown_before(connection) {
            let demand = Arc::clone(demand);
            let verified = self.compute(move || demand.verify_again(&shown)).await?;
            verified.map_err(|why| Failed::Unproven(why.to_string()))?;
        }
        demand.proof(connection).map_err(Failed::Unproven)
    }

    async fn shake_hands(
        &self,
        accepted: Accepted,
        config: Arc<ServerConfig>,
    ) -> Result<ServerConnection, Failed> {
        let begun = self.compute(move || accepted.into_connection(config)).await?;
        let mut connection = begun.map_err(|(why, alert)| self.refuse(&why, alert))?;
        while connection.is_handshaking() {
            poll_fn(|context| self.poll_more(&mut connection, context)).await?;
            // What is left once keys have been exchanged takes some microseconds.
            let processed = if self.is_brief && connection.negotiated_key_exchange_group().is_some() {
                connection.process_new_packets().map(drop)
            } else {
                let process = move || (connection.process_new_packets().map(drop), connection);
                let (processed, back) = self.compute(process).await?;
                connection = back;
                processed
            };
            if let Err(why) = processed {
                flush_now(&mut connection, &self.tcp);
                return Err(match why {
                    rustls::Error::NoCertificatesPresented | rustls::Error::InvalidCertificate(_) => {
                        Failed::Unproven(why.to_string())
                    }
                    why => Failed::Refused(why.to_string()),
                });
            }
        }
        Ok(connection)
    }

    /// Waits while a certificate for this name is being obtained, if one is. Without it, the client gets what others get.
    async fn await_certificate(&self, name: &str) -> Result<(), Failed> {
        let Some(done) = asked_name::look(name, self.shared) else { return Ok(()) };
        // It may lose its place to another client meanwhile, and is not late.
        self.counted.rest(asked_name::PATIENCE);
        let mut done = pin!(done.notified());
        let ended = poll_fn(|context| match done.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Ok(())),
            Poll::Pending => {
                self.look_at_time(context).map_or_else(|why| Poll::Ready(Err(why)), |()| Poll::Pending)
            }
        });
        ended.await?;
        self.counted.rest(self.shared.settings.tls.handshake_timeout);
        Ok(())
    }

    async fn greeting(&self, received: &[u8]) -> Result<Accepted, Failed> {
        let mut acceptor = Acceptor::default();
        let mut rest = received;
        poll_fn(|context| self.poll_greeting(&mut acceptor, &mut rest, context)).await
    }

    fn poll_greeting(
        &self,
        acceptor: &mut Acceptor,
        rest: &mut &[u8],
        context: &mut Context<'_>,
    ) -> Poll<Result<Accepted, Failed>> {
        loop {
            match acceptor.accept() {
                Ok(None) => {}
                Ok(Some(accepted)) => return Poll::Ready(Ok(accepted)),
                Err((why, alert)) => return Poll::Ready(Err(self.refuse(&why, alert))),
            }
            self.look_at_time(context)?;
            let read = if rest.is_empty() {
                let readable = ready!(self.tcp.poll_read_ready(context));
                readable.and_then(|()| acceptor.read_tls(&mut Socket(&self.tcp)))
            } else {
                acceptor.read_tls(rest)
            };
            match read {
                Ok(length) if length > 0 => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                _ => return Poll::Ready(Err(Failed::Gone)),
            }
        }
    }

    /// Sends what is to be sent, and receives more.
    fn poll_more(
        &self,
        connection: &mut ServerConnection,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), Failed>> {
        self.look_at_time(context)?;
        ready!(poll_flush(connection, &self.tcp, context)).map_err(|_| Failed::Gone)?;
        match ready!(poll_receive(connection, &self.tcp, context)) {
            Ok(true) => Poll::Ready(Ok(())),
            Ok(false) | Err(_) => Poll::Ready(Err(Failed::Gone)),
        }
    }

    fn look_at_time(&self, context: &Context<'_>) -> Result<(), Failed> {
        if self.shared.leaving() != Leaving::No {
            self.counted.deadline.at_most(self.shared.time_for_last_request());
        }
        if self.counted.is_dismissed() {
            return Err(Failed::Dismissed);
        }
        if self.counted.deadline.has_passed(context) {
            return Err(Failed::TimedOut);
        }
        Ok(())
    }

    /// Has a thread of the pool compute, unless too many wait for that.
    async fn compute<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Failed> {
        let here =
            if self.is_brief && self.tls.is_quick() { self.shared.loop_share.spend(work) } else { Err(work) };
        let work = match here {
            Ok(computed) => return Ok(computed),
            Err(work) => work,
        };
        let until_ms = self.counted.deadline.at_ms();
        let under_way = self.tls.compute().ok_or(Failed::TooMany)?;
        self.counted.work();
        let mut thread = Box::pin(self.shared.handshakes.take());
        let held = poll_fn(|context| match thread.as_mut().poll(context) {
            Poll::Ready(held) => Poll::Ready(Ok(held)),
            Poll::Pending => {
                self.look_at_time(context).map_or_else(|failed| Poll::Ready(Err(failed)), |()| Poll::Pending)
            }
        });
        let (computed, _) = held.await?.spend(work).await.ok_or(Failed::Gone)?;
        drop(under_way);
        self.counted.rest_until(until_ms);
        Ok(computed)
    }

    /// Sends the alert, as far as the socket takes it.
    fn refuse(&self, why: &rustls::Error, mut alert: AcceptedAlert) -> Failed {
        // The client may have left.
        let _ = alert.write_all(&mut Socket(&self.tcp));
        Failed::Refused(why.to_string())
    }
}
