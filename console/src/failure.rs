//! Why a page or a part of one cannot be shown.

use axum::http::StatusCode;
use redis::{ErrorKind, RedisError, ServerErrorKind};

use crate::names::shown;

#[derive(Clone, Debug, PartialEq)]
pub enum Failure {
    /// Nobody is signed in, or the server no longer takes the user's name and password.
    SignedOut,
    /// The user of this session may not do that on the server.
    NotAllowed(String),
    /// The server cannot be reached, or does not answer.
    Unreachable(String),
    /// The server has no `JOB.*` commands.
    NoModule,
    /// There is no such thing.
    NotFound(String),
    /// The request makes no sense.
    BadRequest(String),
    /// This console, or the rules of this page, do not do that.
    Refused(String),
    /// The server's own words: a code and a text.
    Server(String),
}

impl Failure {
    pub fn status(&self) -> StatusCode {
        match self {
            Self::SignedOut => StatusCode::UNAUTHORIZED,
            Self::NotAllowed(_) | Self::Refused(_) => StatusCode::FORBIDDEN,
            Self::Unreachable(_) | Self::NoModule => StatusCode::BAD_GATEWAY,
            Self::NotFound(_) => StatusCode::NOT_FOUND,
            Self::BadRequest(_) => StatusCode::BAD_REQUEST,
            Self::Server(_) => StatusCode::CONFLICT,
        }
    }

    /// A heading.
    pub fn title(&self) -> &'static str {
        match self {
            Self::SignedOut => "Sign in",
            Self::NotAllowed(_) => "Not allowed",
            Self::Unreachable(_) => "The server cannot be reached",
            Self::NoModule => "No job boards on this server",
            Self::NotFound(_) => "Not found",
            Self::BadRequest(_) => "Something in this request is missing or wrong",
            Self::Refused(_) => "Refused",
            Self::Server(_) => "The server refused",
        }
    }

    /// A sentence.
    pub fn text(&self) -> String {
        match self {
            Self::SignedOut => "Sign in to continue.".into(),
            Self::NoModule => {
                "The server has no JOB commands: load libjobboard.so into it (MODULE LOAD, or loadmodule in redis.conf)."
                    .into()
            }
            Self::NotAllowed(text)
            | Self::Unreachable(text)
            | Self::NotFound(text)
            | Self::BadRequest(text)
            | Self::Refused(text)
            | Self::Server(text) => text.clone(),
        }
    }
}

impl From<RedisError> for Failure {
    fn from(error: RedisError) -> Self {
        let code = error.code().unwrap_or_default().to_owned();
        let detail = shown(error.detail().unwrap_or_default().as_bytes());
        match error.kind() {
            ErrorKind::AuthenticationFailed => Self::SignedOut,
            ErrorKind::Server(ServerErrorKind::NoPerm) => Self::NotAllowed(detail),
            _ if code == "NOAUTH" || code == "WRONGPASS" => Self::SignedOut,
            _ if code == "NOPERM" => Self::NotAllowed(detail),
            _ if code == "WRONGTYPE" => Self::NotFound("That key is no job board.".into()),
            _ if detail.starts_with("unknown command") || detail.starts_with("unknown type name") => {
                Self::NoModule
            }
            ErrorKind::Io | ErrorKind::ClusterConnectionNotFound | ErrorKind::Parse => Self::Unreachable(
                format!("The server does not answer: {}", shown(error.to_string().as_bytes())),
            ),
            _ if code.is_empty() => Self::Unreachable(shown(error.to_string().as_bytes())),
            _ => Self::Server(format!("{code} {detail}").trim_end().to_owned()),
        }
    }
}
