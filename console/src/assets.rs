//! The files of the pages, compiled in.

use axum::extract::Path;
use axum::http::{header, StatusCode};
use axum::response::{IntoResponse, Response};

const FILES: [(&str, &str, &str); 3] = [
    ("style.css", "text/css; charset=utf-8", include_str!("../assets/style.css")),
    ("console.js", "text/javascript; charset=utf-8", include_str!("../assets/console.js")),
    ("icon.svg", "image/svg+xml", include_str!("../assets/icon.svg")),
];

pub async fn get(Path(file): Path<String>) -> Response {
    match FILES.iter().find(|(name, _, _)| *name == file) {
        Some((_, kind, text)) => {
            ([(header::CONTENT_TYPE, *kind), (header::CACHE_CONTROL, "max-age=300")], *text).into_response()
        }
        None => StatusCode::NOT_FOUND.into_response(),
    }
}
