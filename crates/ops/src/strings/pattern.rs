//! Compiles regular expressions, and matches them in bounded time. With an NFA, the time of a match is bounded by the
//! product of the bytes in the text and the bytes in the NFA; if both are as long as allowed, this can be minutes. A
//! small product is charged as work, and the text is matched at once. For a large product, a lazy DFA is tried first,
//! which takes one step per byte of the text. Its states are built only as far as the text needs them, in limited
//! memory, and anew for each match, so that the charge does not depend on earlier matches. If the DFA needs more memory
//! than that, the NFA matches the pattern after all, provided that the product is below a limit.

use super::re2::translated;
use super::{Reason, invalid};
use crate::strings::limits;
use cembra_runtime::{Context, Fault, FaultKind};
use regex::{CaptureLocations, Regex, RegexBuilder};
use regex_automata::nfa::thompson::{self, NFA, pikevm};
use regex_automata::util::primitives::NonMaxUsize;
use regex_automata::{Anchored, Input, hybrid};
use std::borrow::Cow;
use std::ops::Range;

/// The bytes of the NFA that count as one unit of work for each byte of a text. A unit takes two nanoseconds at most,
/// as measured.
const BYTES_PER_UNIT: usize = 8;
/// The largest product of a text's bytes and the NFA's weight for which the `regex` crate matches the text directly.
const SMALL: usize = 8 << 20;
/// The units of work per byte of memory of the lazy DFA, charged for building it.
const UNITS_PER_BYTE_MADE: usize = 8;
/// The units of work per byte of the NFA, charged for compiling a pattern.
const UNITS_PER_BYTE_COMPILED: usize = 6;
/// The units of work per byte of the NFA, charged for compiling the automata for long texts.
const UNITS_PER_BYTE_OF_LONG: usize = 12;

/// A compiled regular expression, with the text that it was compiled from.
pub(super) struct Pattern {
    text: Box<str>,
    /// The pattern in the syntax of the `regex` crate.
    translated: Box<str>,
    regex: Regex,
    captures: CaptureLocations,
    /// The units of work per byte of a text, for matching by the NFA.
    weight: usize,
}

/// The automata that match a pattern with a text for which the product of the bytes in the text and in the NFA is
/// large: a lazy DFA, and an NFA in case the DFA gives up.
pub(super) struct LongTextAutomata {
    pattern: Box<str>,
    dfa: hybrid::regex::Regex,
    vm: pikevm::PikeVM,
    vm_cache: pikevm::Cache,
}

fn nfa_config() -> thompson::Config {
    thompson::Config::new().nfa_size_limit(Some(limits::PATTERN_MEMORY))
}

const TOO_LARGE: &str = "the pattern compiles to more than 1 MiB";

impl Pattern {
    /// Compiles a regular expression.
    ///
    /// # Errors
    /// If `pattern` is not a regular expression, or is too large. The error is a line of text with the reason.
    #[cold]
    pub(super) fn compile(pattern: &str) -> Result<Pattern, Cow<'static, str>> {
        if pattern.len() > limits::PATTERN_BYTES {
            return Err("the pattern is longer than 64 KiB".into());
        }
        let translated = translated(pattern).map_err(|Reason(reason)| Cow::Borrowed(reason))?;
        let memory = limits::PATTERN_MEMORY;
        let regex = match RegexBuilder::new(&translated).size_limit(memory).dfa_size_limit(memory).build() {
            Ok(regex) => regex,
            Err(regex::Error::CompiledTooBig(_)) => return Err(TOO_LARGE.into()),
            Err(error) => {
                // The crate shows the translated pattern first, which no user wrote; its last line says what is wrong.
                let error = error.to_string();
                let problem = error.lines().last().map_or("", |line| line.strip_prefix("error: ").unwrap_or(line));
                return Err(format!("the pattern is not a regular expression: {problem}").into());
            }
        };
        let nfa: NFA = thompson::Compiler::new().configure(nfa_config()).build(&translated).map_err(|_| TOO_LARGE)?;
        let weight = nfa.memory_usage().div_ceil(BYTES_PER_UNIT);
        let captures = regex.capture_locations();
        Ok(Pattern { text: pattern.into(), translated: translated.into(), captures, regex, weight })
    }

    /// Charges the work of compiling the pattern. Each use is charged, even if the compiled pattern was cached, because
    /// the work of an evaluation must not depend on earlier evaluations in this thread.
    ///
    /// # Errors
    /// If the evaluation would exceed its limit of work.
    pub(super) fn charge_compiling(&self, context: &mut Context) -> Result<(), Fault> {
        context.charge(self.weight.saturating_mul(BYTES_PER_UNIT * UNITS_PER_BYTE_COMPILED))
    }

    /// The text of the regular expression, as the model has it.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The number of capturing groups, without the whole match.
    pub(super) fn groups(&self) -> usize {
        self.regex.captures_len() - 1
    }

    /// Returns true if a part of the text matches the pattern. `long` caches the automata for long texts. Automata of another pattern that are in the
    /// cache are replaced.
    ///
    /// # Errors
    /// If matching would take too long.
    pub(super) fn is_match(
        &self,
        context: &mut Context,
        long: &mut Option<LongTextAutomata>,
        text: &str,
    ) -> Result<bool, Fault> {
        let product = self.product(text)?;
        if product <= SMALL {
            context.charge(product)?;
            return Ok(self.regex.is_match(text));
        }
        let long = self.long(context, long)?;
        if let Some(found) = long.is_match_by_steps(context, text)? {
            return Ok(found);
        }
        charge_product(context, product)?;
        Ok(long.vm.is_match(&mut long.vm_cache, Input::new(text)))
    }

    /// The capture of the first group in the first match: `None` without a match, empty if the group does not take part in
    /// the match.
    ///
    /// # Errors
    /// If matching would take too long.
    pub(super) fn first_group<'t>(
        &mut self,
        context: &mut Context,
        long: &mut Option<LongTextAutomata>,
        text: &'t str,
    ) -> Result<Option<&'t str>, Fault> {
        let part = |group: Option<(usize, usize)>| group.and_then(|(start, end)| text.get(start..end)).unwrap_or("");
        let product = self.product(text)?;
        if product <= SMALL {
            context.charge(product)?;
            let found = self.regex.captures_read(&mut self.captures, text).is_some();
            return Ok(found.then(|| part(self.captures.get(1))));
        }
        let long = self.long(context, long)?;
        let span = match long.find_by_steps(context, text)? {
            Some(None) => return Ok(None),
            Some(Some(found)) => found,
            None => 0..text.len(),
        };
        // Inside of the match, the NFA finds its groups.
        let anchored = if span.len() < text.len() { Anchored::Yes } else { Anchored::No };
        charge_product(context, span.len().saturating_mul(self.weight))?;
        let mut slots: [Option<NonMaxUsize>; 4] = [None; 4];
        let input = Input::new(text).span(span).anchored(anchored);
        let found = long.vm.search_slots(&mut long.vm_cache, &input, &mut slots);
        Ok(found.map(|_| part(slots[2].map(NonMaxUsize::get).zip(slots[3].map(NonMaxUsize::get)))))
    }

    /// Charges the work of `searches` searches in the text that begin at the position `from`. Each search may read the
    /// text to its end, even if the match is near.
    ///
    /// # Errors
    /// If the searches would take too long.
    pub(super) fn charge_searches(
        &self,
        context: &mut Context,
        searches: usize,
        text: &str,
        from: usize,
    ) -> Result<(), Fault> {
        // The whole text is checked against the limit.
        self.product(text)?;
        let most = (text.len() - from).saturating_mul(self.weight);
        if most > limits::MATCHING_WORK {
            return Err(too_long());
        }
        context.charge(most.saturating_mul(searches))?;
        if context.poll_cancelled() { Err(Fault::new(FaultKind::Cancelled)) } else { Ok(()) }
    }

    /// Searches for the next match from the position `from` on, and returns the captures of its groups; `None` if there
    /// is no match.
    pub(super) fn captures_at(&mut self, text: &str, from: usize) -> Option<&CaptureLocations> {
        self.regex.captures_read_at(&mut self.captures, text, from)?;
        Some(&self.captures)
    }

    /// The most work that matching the text by the NFA can take. Fails for a text above the limit.
    fn product(&self, text: &str) -> Result<usize, Fault> {
        if text.len() > limits::MATCHED_BYTES {
            return Err(invalid("a text must not be longer than 1 MiB to be matched"));
        }
        Ok(text.len().saturating_mul(self.weight))
    }

    /// Returns the automata for long texts, from the cache `kept` if they are there. They are charged for in both
    /// cases.
    fn long<'l>(
        &self,
        context: &mut Context,
        kept: &'l mut Option<LongTextAutomata>,
    ) -> Result<&'l mut LongTextAutomata, Fault> {
        context.charge(self.weight.saturating_mul(BYTES_PER_UNIT * UNITS_PER_BYTE_OF_LONG))?;
        if kept.as_ref().is_some_and(|long| *long.pattern != *self.translated) {
            *kept = None;
        }
        match kept {
            Some(long) => Ok(long),
            None => Ok(kept.insert(LongTextAutomata::compile(&self.translated).ok_or_else(|| invalid(TOO_LARGE))?)),
        }
    }
}

/// Charges for matching by the NFA; fails above the limit for one operator.
fn charge_product(context: &mut Context, product: usize) -> Result<(), Fault> {
    if product > limits::MATCHING_WORK {
        return Err(too_long());
    }
    context.charge(product)
}

fn too_long() -> Fault {
    invalid("the pattern is too large for a text of this length")
}

impl LongTextAutomata {
    /// Compiles the automata. `None` if one is too large. That is possible although the pattern was within the limit,
    /// because its automaton for searching backwards can be larger.
    #[cold]
    fn compile(pattern: &str) -> Option<LongTextAutomata> {
        let vm = pikevm::Builder::new().thompson(nfa_config()).build(pattern).ok()?;
        let steps = hybrid::dfa::Config::new()
            .cache_capacity(2 * limits::PATTERN_MEMORY)
            .skip_cache_capacity_check(true)
            // Gives up when its memory is full.
            .minimum_cache_clear_count(Some(0))
            // Gives up at characters that are not ASCII, if the pattern has word boundaries.
            .unicode_word_boundary(true);
        // In reverse a pattern may be larger, so its limit is that of both directions together.
        let backwards = thompson::Config::new().nfa_size_limit(Some(2 * limits::PATTERN_MEMORY));
        let dfa = hybrid::regex::Builder::new().thompson(backwards).dfa(steps).build(pattern).ok()?;
        let vm_cache = vm.create_cache();
        Some(LongTextAutomata { pattern: pattern.into(), dfa, vm, vm_cache })
    }

    /// Builds the lazy DFA anew, and runs it; `None` if the DFA gives up.
    fn by_steps<T>(
        &self,
        context: &mut Context,
        text: &str,
        run: impl FnOnce(&hybrid::regex::Regex, &mut hybrid::regex::Cache) -> Option<T>,
    ) -> Result<Option<T>, Fault> {
        context.charge(text.len())?;
        let mut made = self.dfa.create_cache();
        let found = run(&self.dfa, &mut made);
        context.charge(made.memory_usage().saturating_mul(UNITS_PER_BYTE_MADE))?;
        Ok(found)
    }

    fn is_match_by_steps(&self, context: &mut Context, text: &str) -> Result<Option<bool>, Fault> {
        self.by_steps(context, text, |dfa, cache| {
            let input = Input::new(text).earliest(true);
            dfa.forward().try_search_fwd(cache.forward_mut(), &input).ok().map(|found| found.is_some())
        })
    }

    fn find_by_steps(&self, context: &mut Context, text: &str) -> Result<Option<Option<Range<usize>>>, Fault> {
        self.by_steps(context, text, |dfa, cache| {
            let found = dfa.try_search(cache, &Input::new(text)).ok()?;
            Some(found.map(|found| found.range()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context(work: u64) -> Context {
        let mut context = Context::new();
        context.set_string_work(work);
        context.begin();
        context
    }

    /// The results of matching by the lazy DFA and by the NFA, which must be equal.
    fn both(pattern: &str, text: &str) -> [(bool, Option<String>); 2] {
        let context = &mut context(u64::MAX >> 1);
        let mut of = Pattern::compile(pattern).expect("a pattern");
        let mut run = |weight: usize| {
            of.weight = weight;
            let long = &mut None;
            let found = of.is_match(context, long, text).expect("a match");
            (found, of.first_group(context, long, text).expect("a match").map(str::to_owned))
        };
        [run(0), run(SMALL / text.len().max(1) + 1)]
    }

    #[test]
    fn long_texts_are_matched_as_short_ones() {
        let texts = ["", "a", "b=22, b=3", "x a\nb\n", "h\u{e9}llo w\u{f6}rld", "aab aab", "\u{416}\u{44f} 7", "foo"];
        let patterns = [
            "()",
            "(a)?b",
            "b=(\\d+)",
            "(?m)^(.)$",
            "\\b(w)",
            "\\b(\u{f6}?)r",
            "(a|ab)(?:c|bcd|)",
            "(a*)*b",
            "(?i)(FOO)",
            "(\\w+)\\s",
            "(\\pL)$",
            "^(x)",
            "(?s)(.*)",
            "(z)",
            "o(?:(r)|l)",
        ];
        for pattern in patterns {
            for text in texts {
                let [short, long] = both(pattern, text);
                assert_eq!(short, long, "{pattern} {text:?}");
            }
        }
    }

    #[test]
    fn a_match_is_charged_the_same_whatever_was_matched_before() {
        let mut patterns = ["(\\w+)@", "(a[ab]{50}c)"].map(|p| Pattern::compile(p).expect("a pattern"));
        let texts: Vec<String> = (1..6).map(|n| "ab\u{e9}b ".repeat(30_000 * n)).collect();
        let mut kept = None;
        let mut taken = |pattern: &mut Pattern, text: &str| {
            let context = &mut context(1 << 30);
            let found = pattern.first_group(context, &mut kept, text).map(|_| ());
            (found, context.work_done())
        };
        let order = [(0, 0), (0, 1), (1, 2), (0, 0), (1, 2), (0, 3), (0, 0)];
        let all = order.map(|(pattern, text)| taken(&mut patterns[pattern], &texts[text]));
        assert_eq!((&all[0], &all[0], &all[2]), (&all[3], &all[6], &all[4]));
    }

    #[test]
    fn what_takes_too_long_is_refused_before_it_takes_long() {
        let mut bits = 0x9E37_79B9_u32;
        let mut letter = || {
            bits ^= bits << 13;
            bits ^= bits >> 17;
            bits ^= bits << 5;
            if bits & 1 == 0 { 'a' } else { 'b' }
        };
        let text: String = (0..1 << 20).map(|_| letter()).collect();
        let start = std::time::Instant::now();
        for (pattern, most) in [("(a[ab]{10000}c)", 1), ("(a[ab]{1000}c)", 1), ("(?:(a)|b|ab)*c", 0)] {
            let context = &mut context(1 << 30);
            let mut of = Pattern::compile(pattern).expect("a pattern");
            let long = &mut None;
            let found = [of.is_match(context, long, &text).err(), of.first_group(context, long, &text).err()];
            assert_eq!(found.iter().flatten().count(), 2 * most, "{pattern}");
            assert!(found.iter().flatten().all(|fault| fault.kind == FaultKind::Invalid));
            assert!(context.work_done() < 100 << 20, "{pattern} {}", context.work_done());
        }
        assert!(start.elapsed().as_secs() < 20, "not even without optimisation: {:?}", start.elapsed());
    }
}
