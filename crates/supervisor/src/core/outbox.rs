//! What an application asks for in a step, in this order; and whether the step has to go on.

use super::action::AppAction;
use super::ids::{Process, Receipt};
use super::log::AppLog;
use crate::facts::boot_failure::BootFailure;
use highball_link::AppCommand;
use std::path::PathBuf;

#[derive(Debug, Default)]
pub(crate) struct Outbox {
    actions: Vec<AppAction>,
    /// Something has changed that may have consequences in the same step.
    has_changed: bool,
    receipts: u64,
}

impl Outbox {
    pub(crate) fn act(&mut self, action: AppAction) {
        self.go_on();
        self.actions.push(action);
    }

    pub(crate) fn act_all(&mut self, actions: impl IntoIterator<Item = AppAction>) {
        actions.into_iter().for_each(|action| self.act(action));
    }

    pub(crate) fn log(&mut self, log: AppLog) {
        self.act(AppAction::Log(log));
    }

    pub(crate) fn notify(&mut self, command: AppCommand<()>) {
        self.act(AppAction::Notify(command));
    }

    pub(crate) fn checkpoint(&mut self, step: &'static str) {
        self.act(AppAction::Checkpoint(step));
    }

    /// Answers an order, if somebody waits for that.
    pub(crate) fn answer(&mut self, receipt: Option<Receipt>, answer: Result<u32, String>) {
        self.act_all(receipt.map(|receipt| AppAction::Answer(receipt, answer)));
    }

    /// A process has sent a message that it may not send now.
    pub(crate) fn out_of_turn(&mut self, process: Process, message: &'static str) {
        self.log(AppLog::OutOfTurn { process, message });
    }

    /// Asks for the diagnosis of a boot that has failed in this folder.
    pub(crate) fn diagnose(&mut self, folder: PathBuf, failure: BootFailure) -> Receipt {
        let receipt = self.next_receipt();
        self.act(AppAction::Diagnose { receipt, folder, failure: Box::new(failure) });
        receipt
    }

    pub(crate) fn next_receipt(&mut self) -> Receipt {
        self.receipts += 1;
        Receipt(self.receipts)
    }

    /// Something has changed: another pass over the state has to follow.
    pub(crate) fn go_on(&mut self) {
        self.has_changed = true;
    }

    /// Whether something has changed since this was asked last.
    pub(crate) fn take_change(&mut self) -> bool {
        std::mem::take(&mut self.has_changed)
    }

    /// What has to be done since the last step.
    pub(crate) fn take_actions(&mut self) -> Vec<AppAction> {
        std::mem::take(&mut self.actions)
    }
}
