//! Both backends, the evaluator on bits and the lanes held against each other and against calendars, libraries and limits.

mod ahead_of_time;
mod dates;
mod explain;
mod first_tries;
mod format;
mod functions;
mod gradients;
mod hostile;
mod lanes;
mod laziness;
mod limits;
mod maps;
mod nesting;
mod numbers;
mod pieces;
mod rewrites;
mod selections;
mod signatures;
mod structs;
mod targets;
mod texts;
mod time_zones;
mod warnings;
