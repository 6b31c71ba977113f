//! The rules of the project that can be checked by reading its files, and pages that are made by tests.

mod comments;
mod house;
mod messages;
mod modules;
mod pages;
