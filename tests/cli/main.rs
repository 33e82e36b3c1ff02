//! The binary `trommel` as users meet it: arguments, files, signals and sockets in; text and exit
//! codes out.

mod claims;
mod config_errors;
mod configs;
mod console;
mod counting;
mod dedup;
mod devices;
mod differential;
mod documents;
mod explain;
mod inputs;
mod interrupts;
mod listings;
mod outputs;
mod runs;
mod serving;
mod support;
mod top_columns;
