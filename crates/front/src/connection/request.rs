//! Reading a request's head, and deciding whose it is.

use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{ready, Context, Poll};

use highball_config::{AppId, ShowDiagnosis};

use super::routed::Routed;
use super::transaction::Again;
use super::{Client, Connection, End, Login, Step};
use crate::access_log::Entry;
use crate::cache::{Fill, Watch};
use crate::clock::{now_ms, turn_us};
use crate::developer_key::{Followed, LINK_KEY_BYTES};
use crate::exchange::response_head::HeadContext;
use crate::files::{StaticAnswer, StaticFiles, StaticRequest};
use crate::message::answer::AnswerEvents;
use crate::message::conditions::Conditions;
use crate::message::forwarded::is_about_sending;
use crate::message::refusal::Refusal;
use crate::message::request_head::{known_key, BodyFraming, Method, RingContext, Version};
use crate::message::request_id::RequestId;
use crate::protocol::{BytesRead, Protocol, Unreadable};
use crate::refusals::failure_pages::{Audience, Evidence, Form, Page};
use crate::route::app_list;
use crate::route::app_state::{AppState, Visit};
use crate::shared::Leaving;

/// The largest buffer that an idle connection keeps.
const IDLE_BYTES: usize = 4096;

/// How often a request waits until more is known of a file: once for the one that it names, and once for the page that says
/// that there is none.
const MOST_WAITS: u8 = 2;

/// The next step of a request, or the end of the connection.
type Examined = Result<Step, End>;

impl Connection {
    /// Reads the next request's head and decides its next step.
    pub(super) async fn next_request(&mut self) -> Result<Step, End> {
        if let Some(again) = self.request.again.take() {
            return Ok(self.route_again(again));
        }
        self.forget_client();
        self.request.begin();
        self.protocol.finish().map_err(|_| End::Done)?;
        self.counted.rest(self.shared.settings.limits.idle_timeout);
        if !self.buffer.is_empty() {
            self.counted.work();
            // The client did not wait for the answer before.
            if let Some(examined) = self.examine_buffer() {
                return examined;
            }
            self.counted.deadline.set(Some(self.shared.settings.limits.head_timeout));
        }
        let mut known = Leaving::No;
        poll_fn(|context| self.poll_request(context, &mut known)).await
    }

    fn poll_request(&mut self, context: &mut Context<'_>, known: &mut Leaving) -> Poll<Result<Step, End>> {
        loop {
            if self.protocol.has_replies() || !self.output.is_sent() {
                ready!(self.poll_events(context))?;
            }
            if self.protocol.is_closing() {
                return Poll::Ready(Err(End::Linger));
            }
            if self.client != Client::Open {
                return Poll::Ready(Err(End::Gone));
            }
            let begun = self.protocol.has_begun(self.buffer.as_slice());
            let shared = Rc::clone(&self.shared);
            let mut scratch = shared.scratch.borrow_mut();
            let Poll::Ready(read) = self.stream.poll_read_some(context, &mut scratch) else {
                return self.poll_without_request(context, begun, known);
            };
            let length = match read {
                Ok(0) | Err(_) => return Poll::Ready(Err(End::Gone)),
                Ok(length) => length,
            };
            if let Some(examined) = self.examine_read(&scratch[..length], begun) {
                return Poll::Ready(examined);
            }
        }
    }

    /// Nothing has come to be read, and no request is whole. The first bytes of one may be there (`begun`).
    fn poll_without_request(
        &mut self,
        context: &mut Context<'_>,
        begun: bool,
        known: &mut Leaving,
    ) -> Poll<Result<Step, End>> {
        if self.shared.leaving() != *known && !begun {
            *known = self.shared.leaving();
            self.counted.deadline.at_most(self.shared.time_for_last_request());
        }
        if self.counted.deadline.has_passed(context) {
            return Poll::Ready(if begun {
                let buffer = self.buffer.take();
                Ok(self.refuse_unread(&buffer, Refusal::HeadTimeout))
            } else {
                Err(End::Gone)
            });
        }
        if self.counted.is_dismissed() {
            return Poll::Ready(Err(End::Gone));
        }
        self.become_idle();
        Poll::Pending
    }

    /// A connection that has nothing to do keeps little memory: most of those that are open are idle.
    fn become_idle(&mut self) {
        let mut inner = self.request.exchange.borrow();
        if inner.request.head.capacity() > IDLE_BYTES {
            inner.request.head = Vec::new();
        }
    }

    /// Looks at what has just been read, together with what was kept before.
    fn examine_read(&mut self, bytes: &[u8], begun: bool) -> Option<Examined> {
        if begun {
            return self.examine_more(bytes);
        }
        let idle_until_ms = self.counted.deadline.at_ms();
        self.counted.work();
        self.counted.deadline.set(Some(self.shared.settings.limits.head_timeout));
        let examined = self.examine_more(bytes);
        if examined.is_none() && !self.protocol.has_begun(self.buffer.as_slice()) {
            // What belongs to no request is no reason to keep the connection.
            self.counted.rest_until(idle_until_ms);
        }
        examined
    }

    fn examine_more(&mut self, bytes: &[u8]) -> Option<Examined> {
        if !self.buffer.is_empty() {
            self.buffer.add(bytes);
            return self.examine_buffer();
        }
        // The usual case: a whole head in one read, used where it stands.
        let (examined, used) = self.examine(bytes);
        self.buffer.add(&bytes[used..]);
        examined
    }

    fn examine_buffer(&mut self) -> Option<Examined> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let (examined, used) = self.examine(buffer.as_slice());
        buffer.take_off(used);
        self.buffer = buffer;
        examined
    }

    /// Reads the head at the start of `bytes`. Returns the request's next step, and the number of bytes that are used
    /// up.
    fn examine(&mut self, bytes: &[u8]) -> (Option<Examined>, usize) {
        let read = self.protocol.read_head(bytes, &self.shared.settings.limits, &mut self.request.head);
        let used = match read {
            Ok(BytesRead { used, is_complete: true }) => used,
            Ok(BytesRead { used, is_complete: false }) => return (None, used),
            Err(Unreadable::Refused(refusal)) => {
                return (Some(Ok(self.refuse_unread(bytes, refusal))), bytes.len())
            }
            Err(Unreadable::Gone) => return (Some(Err(End::Gone)), bytes.len()),
        };
        self.protocol.begin_answer(&self.request.head);
        let text = self.protocol.take_head_text(&self.peer).map(|(text, client)| {
            self.become_client(client);
            text
        });
        if let Err(refusal) = self.learn_client(text.as_deref().unwrap_or(&bytes[..used])) {
            return (Some(Ok(Step::Refuse(refusal))), used);
        }
        let step = match text {
            Some(text) => self.route_again(Again { text, waits: 0 }),
            None => {
                let step = self.route(&bytes[..used], 0);
                if let Step::Wait(_) = step {
                    self.request.again =
                        Some(Again { text: bytes[..used].to_vec(), waits: self.waits_after(0) });
                }
                step
            }
        };
        (Some(Ok(step)), used)
    }

    /// Routes a request, and keeps what its head has spans of if it has to be routed again.
    fn route_again(&mut self, Again { text, waits }: Again) -> Step {
        let step = self.route(&text, waits);
        if let Step::Wait(_) = step {
            self.request.again = Some(Again { text, waits: self.waits_after(waits) });
        }
        step
    }

    /// How often the request at hand has waited for a file, now that it waits again.
    fn waits_after(&self, waits: u8) -> u8 {
        waits + u8::from(!self.request.login.as_ref().is_some_and(Login::is_open))
    }

    /// Refuses a request whose head could not be read: what stands in `head` is of the one before. No body follows if the
    /// method is HEAD, whatever else is wrong (RFC 9110 section 9.3.2).
    #[cold]
    fn refuse_unread(&mut self, bytes: &[u8], refusal: Refusal) -> Step {
        let is_head = bytes.trim_ascii_start().starts_with(b"HEAD ");
        self.request.head.method = if is_head { Method::Head } else { Method::default() };
        self.request.head.version = Version::Http11;
        self.request.head.keep_alive = false;
        self.protocol.begin_answer(&self.request.head);
        Step::Refuse(refusal)
    }

    /// Whose request it is, by the bytes of its head: that of an application, and there of a static file or of Ruby; or
    /// of neither. It has waited this often until more was known of a file.
    fn route(&mut self, bytes: &[u8], waits: u8) -> Step {
        self.identify(bytes);
        self.request.is_uncounted = true;
        if self.shared.https.is_some() {
            if let Some(step) = self.answer_for_https(bytes) {
                return step;
            }
        }
        let found = self.find_app(bytes);
        self.request.visit = found.as_ref().map(|(app, _)| Visit::new(Rc::clone(app)));
        if let Some(step) = self.follow_link(bytes) {
            return step;
        }
        self.note(self.request.head.target(bytes), bytes);
        if self.is_misdirected(bytes) {
            return Step::Refuse(Refusal::Misdirected);
        }
        let Some((app, prefix_bytes)) = found else { return self.no_app(bytes) };
        let routed = Routed { app: &app, prefix_bytes, bytes };
        if let Some(step) = self.check_health(routed) {
            return step;
        }
        let (is_development, most_bytes) = {
            let settings = app.settings();
            (settings.is_development(), settings.limits.body_bytes)
        };
        self.hide_key(is_development, bytes);
        let rule = app.settings().show_diagnosis;
        self.request.audience = if is_development { self.audience_of(rule, bytes) } else { Audience::Public };
        if let Some(step) = self.log_in(routed) {
            return step;
        }
        if self.request.head.framing.is_beyond(most_bytes) {
            return Step::Refuse(Refusal::BodyTooLarge);
        }
        if let Some(step) = self.look_for_file(routed, waits < MOST_WAITS) {
            return step;
        }
        match self.ask_cache(routed) {
            Ok(watch) => self.prepare_exchange(routed, watch),
            Err(step) => return step,
        }
        Step::Application(app)
    }

    /// The application, and how many bytes at the beginning of the path are its prefix.
    fn find_app(&self, bytes: &[u8]) -> Option<(Rc<AppState>, usize)> {
        let host = self.request.head.host().map(|host| host.name(bytes));
        let apps = self.shared.apps.borrow();
        let (app, prefix_bytes) = apps.route(host, self.request.head.path(bytes))?;
        Some((Rc::clone(app), prefix_bytes))
    }

    fn evidence<'a>(&'a self, bytes: &'a [u8]) -> Evidence<'a> {
        let (settings, key) = (&self.shared.settings, &*self.shared.key);
        let (remote_addr, is_tls) = (self.peer.direct_addr(), self.peer.is_tls);
        Evidence { head: &self.request.head, bytes, remote_addr, is_tls, binds: &settings.binds, key }
    }

    fn audience_of(&self, rule: ShowDiagnosis, bytes: &[u8]) -> Audience {
        self.evidence(bytes).audience(rule, || self.stream.is_of_trusted_user(self.shared.key.user()))
    }

    /// What certificates and the way to HTTPS need, before it is looked whose request it is.
    #[inline(never)]
    fn answer_for_https(&mut self, bytes: &[u8]) -> Option<Step> {
        if self.peer.is_plain_http_on_tls_port {
            return Some(self.lead_back(bytes));
        }
        self.answer_challenge(bytes).or_else(|| self.send_to_https(bytes))
    }

    /// The link that shows that a browser is a developer's: it gets its cookie, and is sent to the same address without
    /// what only the link has. No application and no log sees that; neither where the link proves nothing.
    fn follow_link(&mut self, bytes: &[u8]) -> Option<Step> {
        if self.request.head.target(bytes).len() < LINK_KEY_BYTES {
            return None; // most are shorter
        }
        let followed =
            self.shared.key.followed(self.request.head.path(bytes), self.request.head.query(bytes))?;
        Some(self.welcome_developer(&followed, bytes))
    }

    /// No application gets a field that has the key of the link: the page that was opened by that may be the referer, and programs
    /// in between may repeat a target.
    fn hide_key(&mut self, is_development: bool, bytes: &[u8]) {
        let is_in = |value: &[u8]| self.shared.key.is_in(value);
        let is_referer = || {
            self.request.head.has(known_key::REFERER)
                && self.request.head.values_of(known_key::REFERER, bytes).any(is_in)
        };
        if is_development || is_referer() {
            self.request.head.drop_values(bytes, is_in);
        }
    }

    #[cold]
    fn welcome_developer(&mut self, followed: &Followed, bytes: &[u8]) -> Step {
        self.note(&followed.target, bytes);
        let key = Arc::clone(&self.shared.key);
        let evidence = self.evidence(bytes);
        let is_ours =
            followed.is_link && evidence.may_be_developer() && self.stream.is_of_trusted_user(key.user());
        let cookie = is_ours.then(|| key.set_cookie(evidence.host()));
        if self.request.head.framing != BodyFraming::None {
            self.protocol.end_connection(); // the body would stand before the next request
        }
        redirect(&followed.target, cookie, &mut self.output.events);
        Step::Answer
    }

    /// An authority that looks whether a name is ours.
    fn answer_challenge(&mut self, bytes: &[u8]) -> Option<Step> {
        let https = self.shared.https.as_ref().filter(|_| self.request.head.method.is_idempotent())?;
        let answer = https.tls.challenges().answer(self.request.head.path(bytes))?;
        self.request.visit = None;
        self.note(self.request.head.target(bytes), bytes);
        if self.request.head.framing != BodyFraming::None {
            self.protocol.end_connection(); // the body would stand before the next request
        }
        self.output.events.push_whole(200, self.request.head.method == Method::Head, &answer, |fields| {
            fields.add(b"content-type", b"application/octet-stream");
        });
        Some(Step::Answer)
    }

    /// A client of an address for HTTP, where all are to use HTTPS.
    fn send_to_https(&mut self, bytes: &[u8]) -> Option<Step> {
        let https = self.shared.https.as_ref().filter(|https| https.redirects && !self.peer.is_tls)?;
        if !self.stream.is_tcp() || matches!(self.protocol, Protocol::Gateway(_)) {
            return None;
        }
        let to = https.url_of(&self.request.head, &self.peer.server_name, bytes);
        self.request.visit = None;
        self.note(self.request.head.target(bytes), bytes);
        if self.request.head.framing != BodyFraming::None {
            self.protocol.end_connection(); // the body would stand before the next request
        }
        self.output.events.push_whole(308, self.request.head.method == Method::Head, b"", |fields| {
            fields.add(b"location", &to)
        });
        Some(Step::Answer)
    }

    /// A client that speaks HTTP at an address for HTTPS. A browser is sent to the same address with https://, for this time: the
    /// port may be that of another server tomorrow. What else a client may have sent was readable on the way, so it gets an error.
    #[cold]
    fn lead_back(&mut self, bytes: &[u8]) -> Step {
        const WRONG: &[u8] = b"This address is for HTTPS: write https:// instead of http://.\n";
        let Some(https) = &self.shared.https else { return Step::Refuse(Refusal::NoApp) };
        let to = https.url_of(&self.request.head, &self.peer.server_name, bytes);
        self.request.visit = None;
        self.note(self.request.head.target(bytes), bytes);
        self.protocol.end_connection();
        let is_head = self.request.head.method == Method::Head;
        if is_head || self.request.head.method == Method::Get {
            self.output.events.push_whole(307, is_head, b"", |fields| fields.add(b"location", &to));
        } else {
            self.output.events.push_whole(400, false, WRONG, |fields| {
                fields.add(b"content-type", b"text/plain; charset=utf-8");
            });
        }
        Step::Answer
    }

    /// There is no application for this host and path. Developers get a list of those that there are: names and folders
    /// are for them alone, so the rule is that of a diagnosis, the strictest of those applications.
    #[cold]
    fn no_app(&mut self, bytes: &[u8]) -> Step {
        let apps = self.shared.apps.borrow();
        let is_development = apps.reached().any(|app| app.settings().is_development());
        let rule = apps.reached().map(|app| app.settings().show_diagnosis).max().unwrap_or_default();
        let audience = if is_development { self.audience_of(rule, bytes) } else { Audience::Public };
        if self.request.head.framing != BodyFraming::None {
            return Step::Refuse(Refusal::NoApp);
        }
        let form = match audience {
            Audience::Public => return Step::Refuse(Refusal::NoApp),
            Audience::Unproven(form) => {
                drop(apps);
                return self.hint_at_link(form);
            }
            Audience::Developer(form) => form,
        };
        let key = &self.shared.key;
        let answer =
            app_list::Answer::new(apps.reached().map(|app| &**app), form, key, &self.request.head, bytes);
        drop(apps);
        answer.push(self.request.head.method == Method::Head, &mut self.output.events);
        Step::Answer
    }

    /// Instead of the list of applications, for a possible developer.
    fn hint_at_link(&mut self, form: Form) -> Step {
        let refusal = Refusal::NoApp;
        let page = Page::of_link(&refusal.in_words(), form);
        refusal.answer_with(
            &page.content(),
            self.request.head.method == Method::Head,
            &mut self.output.events,
        );
        Step::Answer
    }

    fn look_for_file(&mut self, routed: Routed<'_>, may_wait: bool) -> Option<Step> {
        let statics = routed.app.statics.borrow().as_ref().map(Rc::clone)?;
        self.find_file(routed, &statics, may_wait)
    }

    #[inline(never)]
    fn find_file(&mut self, routed: Routed<'_>, statics: &StaticFiles, may_wait: bool) -> Option<Step> {
        let (head, buffer) = (&self.request.head, routed.bytes);
        let request = StaticRequest { head, buffer, path: routed.path(head), now_ms: now_ms(), may_wait };
        let answer = match statics.lookup(&request, &mut self.output.events) {
            StaticAnswer::NotMine => match statics.not_found(&request, &mut self.output.events)? {
                Ok(answer) => answer,
                Err(refusal) => return Some(Step::Refuse(refusal)),
            },
            answer => answer,
        };
        match answer {
            StaticAnswer::Pending(pending) => Some(Step::Wait(pending)),
            StaticAnswer::NotMine => None,
            StaticAnswer::Given => Some(Step::Answer),
        }
    }

    pub(super) fn ring_context<'a>(
        &'a self,
        prefix: &'a str,
        prefix_bytes: usize,
        received_us: u64,
    ) -> RingContext<'a> {
        RingContext {
            remote_addr: &self.peer.remote_addr,
            server_name: &self.peer.server_name,
            server_port: self.peer.server_port,
            script_name: prefix,
            prefix_bytes,
            remote_user: self.request.user.as_deref(),
            request_id: self.request.request_id.as_ref().and_then(RequestId::made),
            https: self.peer.is_tls,
            takeover: self.protocol.can_be_taken_over_whole(),
            received_us,
            content_length: None,
        }
    }

    fn prepare_exchange(&mut self, routed: Routed<'_>, watch: Option<Watch>) {
        let Routed { app, prefix_bytes, bytes } = routed;
        let upgrade = || self.request.head.field(known_key::UPGRADE, bytes);
        let is_web_socket = |protocol: &[u8]| protocol.eq_ignore_ascii_case(b"websocket");
        self.request.wants_web_socket = self.request.head.upgrade && upgrade().is_some_and(is_web_socket);
        let generation = self.generation_of(app.id);
        let settings = app.settings();
        let recipient = self.recipient();
        let received_us = turn_us();
        if !settings.sendfile.is_empty() {
            // Highball sends the files, whatever a proxy in front could do.
            self.request.head.drop_fields(bytes, is_about_sending);
        }
        let moments = self.moments_of(&settings, recipient, received_us, bytes);
        let fill = watch.as_ref().and_then(Watch::fill);
        let asked = Conditions::of(&self.request.head, bytes);
        if fill.is_some_and(Fill::has_conditions) {
            self.request.head.drop_known(known_key::IF_NONE_MATCH);
            self.request.head.drop_known(known_key::IF_MODIFIED_SINCE);
        }
        self.request.compression = self.stage_of(app, bytes);
        let mut inner = self.request.exchange.borrow();
        inner.generation = generation;
        inner.moments = moments;
        let context = self.ring_context(&settings.prefix, prefix_bytes, received_us);
        self.request.head.encode_for_ring(bytes, &context, &mut inner.request.head);
        fill.iter().for_each(|fill| fill.add_conditions(&mut inner.request.head));
        inner.response.assign_to(&app.reads, self.buffers(app));
        inner.request.repeatable = self.request.head.method.is_idempotent();
        inner.request.is_for_web_socket = self.request.wants_web_socket;
        inner.request.repeated = false;
        inner.request.received.clear();
        if self.request.head.may_be_for_file() && !app.knows_files() {
            inner.request.received.extend_from_slice(bytes);
        }
        inner.response.reset(HeadContext {
            head_method: self.request.head.method == Method::Head,
            upgrade: self.request.head.upgrade,
            recipient,
            ..HeadContext::default()
        });
        inner.response.ask(asked);
        watch.into_iter().for_each(|watch| inner.response.watch(watch));
    }

    /// The generation of this application that answered last on this connection, 0 before its first answer. From now on
    /// the exchange is this application's.
    pub(super) fn generation_of(&mut self, app: AppId) -> u32 {
        let generation = self.request.exchange.borrow().generation;
        let Some(before) = self.served_by.last_app.replace(app).filter(|before| *before != app) else {
            return generation;
        };
        self.served_by.generations.push((before, generation));
        let known = self.served_by.generations.iter().position(|(other, _)| *other == app);
        known.map_or(0, |at| self.served_by.generations.swap_remove(at).1)
    }

    /// Remembers what the access log will say of a request for this target.
    fn note(&mut self, target: &[u8], bytes: &[u8]) {
        if self.access_log().is_some() {
            self.begin_entry(target, bytes);
        }
    }

    #[inline(never)]
    fn begin_entry(&mut self, target: &[u8], bytes: &[u8]) {
        let head = &self.request.head;
        let version = match head.version {
            Version::Http10 => "HTTP/1.0",
            Version::Http11 => "HTTP/1.1",
            Version::Http2 => "HTTP/2.0",
        };
        let field = |key| head.field(key, bytes);
        let texts = [
            Some(head.method_name(bytes)),
            Some(target),
            field(known_key::REFERER),
            field(known_key::USER_AGENT),
            field(known_key::HOST),
        ];
        // A request that has waited began before it did.
        let begun_us = self.request.entry.take().map_or_else(turn_us, |entry| entry.begun_us);
        self.request.entry = Some(Entry::new(texts, version, begun_us));
    }
}

/// Sends the client to another address.
fn redirect(target: &[u8], cookie: Option<String>, events: &mut AnswerEvents) {
    events.push_whole(303, false, b"", |fields| {
        fields.add(b"location", target);
        if let Some(cookie) = cookie {
            fields.add(b"set-cookie", cookie.as_bytes());
        }
        fields.add(b"cache-control", b"no-store");
        fields.add(b"referrer-policy", b"no-referrer");
    });
}
