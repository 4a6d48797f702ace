//! The token by which the dashboard takes orders. It is made when the server starts and is written nowhere: `highball top
//! --token` asks for it by the control socket, which only the server's user and root can use.

use crate::random::random_digits;
use highball_config::Settings;
use highball_front::developer_key::are_equal;
use std::fmt;
use std::io;

/// The token, as text.
pub(crate) struct Token(String);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

impl Token {
    /// # Errors
    /// The system has no random bytes.
    pub(crate) fn new() -> io::Result<Token> {
        random_digits().map(Token)
    }

    /// Itself, for those who may have it; `None`, where the dashboard takes no orders.
    pub(crate) fn for_operators(&self, settings: &Settings) -> Option<String> {
        let admin = &settings.admin;
        (admin.takes_orders && !admin.binds.is_empty()).then(|| self.0.clone())
    }

    /// Whether this is the value of a field `Authorization` that has it.
    pub(super) fn is_in(&self, authorization: &str) -> bool {
        let given = authorization.split_once(' ').filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        given.is_some_and(|(_, token)| are_equal(token.trim().as_bytes(), self.0.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_token_is_right() {
        let token = Token::new().unwrap();
        assert!(token.is_in(&format!("Bearer {}", token.0)));
        assert!(token.is_in(&format!("bearer  {} ", token.0)));
        let part = &token.0[1..];
        for wrong in ["", "Bearer", "Bearer ", "Basic x", &token.0, &format!("Bearer {part}")] {
            assert!(!token.is_in(wrong), "{wrong}");
        }
        assert_ne!(Token::new().unwrap().0, token.0);
        assert_eq!(format!("{token:?}"), "Token");
    }
}
