//! A WebSocket on its way from one server process to the next, in a hot restart.

use std::rc::Rc;

use super::{Cable, Channel};
use crate::budget::Permit;
use crate::hub::Unsubscribable;
use crate::message::request_head::{flags_of, head_of};
use crate::refusals::failure::fields;
use crate::route::app_state::AppState;
use crate::succession::message::{AnyBytes, PassedCable, PassedChannel, PassedClient};

impl Cable {
    /// Whether another process can go on with it.
    pub(crate) fn may_be_passed(&self) -> bool {
        let is_at_rest = self.waiting.is_empty() && self.running.is_none() && !self.feed.is_replaying();
        let is_between = self.feed.is_between_frames() && self.frames.is_between_messages();
        is_at_rest && is_between && !self.is_closed
    }

    /// Returns all that another process has to know of it.
    pub(crate) fn pass(&self, app: &AppState, client: PassedClient) -> Box<PassedCable> {
        let channel = |channel: &Channel| PassedChannel {
            identifier: channel.identifier.clone(),
            state: channel.state.clone(),
            wrap: Box::from(&*channel.wrap),
            lines: self.feed.positions(&channel.wrap),
        };
        Box::new(PassedCable {
            app: app.settings().name.clone(),
            client,
            flags: flags_of(&self.head),
            fields: fields(&self.head).map(|(name, value)| (name.into(), value.into())).collect(),
            state: self.state.clone().into(),
            channels: self.channels.iter().map(channel).collect(),
            shows_positions: self.feed.shows_positions(),
            internal: self.feed.positions(&self.internal),
            beat_ms: self.beat_ms,
            sent_bytes: self.sent_bytes,
        })
    }

    /// Goes on with a WebSocket of another process.
    ///
    /// # Errors
    /// There is no room for its streams.
    pub(crate) fn go_on_from(
        passed: &PassedCable,
        app: &AppState,
        held: Permit,
    ) -> Result<Box<Cable>, Unsubscribable> {
        let head =
            head_of(passed.flags, passed.fields.iter().map(|(name, AnyBytes(value))| (&**name, &**value)));
        let mut cable = Cable::new(head.into_boxed_slice(), 0, app, held);
        cable.state = passed.state.as_str().into();
        (cable.beat_ms, cable.sent_bytes) = (passed.beat_ms, passed.sent_bytes);
        if passed.shows_positions {
            cable.feed.show_positions();
        }
        let internal = Rc::clone(&cable.internal);
        passed.internal.iter().try_for_each(|line| cable.feed.go_on_at(&internal, line))?;
        for PassedChannel { identifier, state, wrap, lines } in &passed.channels {
            let wrap: Rc<str> = Rc::from(&**wrap);
            lines.iter().try_for_each(|line| cable.feed.go_on_at(&wrap, line))?;
            cable.channels.push(Channel { identifier: identifier.clone(), state: state.clone(), wrap });
        }
        cable.count(&mut Vec::new());
        Ok(cable)
    }
}
