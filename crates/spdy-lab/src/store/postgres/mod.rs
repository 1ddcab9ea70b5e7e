//! A store on a PostgreSQL server.

mod database;
pub(crate) mod tls;
pub mod url;

pub(crate) use database::Postgres;
