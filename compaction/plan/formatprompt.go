package plan

import (
	"fmt"
	"strings"

	"github.com/loci-memory/loci/chunker/frame"
	"github.com/loci-memory/loci/compaction/prose"
)

// FormatPrompt returns a format's instruction for a summary of at most budget tokens.
func FormatPrompt(f *prose.Format, m Mode, budget int) string {
	var parts strings.Builder
	for _, s := range f.Sections {
		parts.WriteString(s.Heading + "\n" + s.Words + "\n\n")
	}
	how := "nothing but the summary"
	if f.Tagged {
		how = "first your analysis between <analysis> tags, then the summary between <summary> tags"
	}
	return promptIntro(m) + "Use exactly these headings, each on a line of its own:\n\n" + parts.String() +
		fmt.Sprintf("Write at most %d words, and %s.", FormatWords(f, m, budget), how)
}

// FormatWords returns how many words a summary in this format may have.
func FormatWords(f *prose.Format, m Mode, budget int) int {
	if f == nil || f.MaxWords == 0 {
		return words(m, budget)
	}
	return max(min(f.MaxWords, budget*5/8), leastWords)
}

// These are the most words of a summary, by mode, if its budget allows them. The numbers are Letta's.
const (
	allWords     = 500
	slidingWords = 300
	leastWords   = 40
)

// everything reports whether a mode summarizes the whole conversation.
func (m Mode) everything() bool { return m == All || m == SelfCompactAll }

// own reports whether the agent's own model writes the summary.
func (m Mode) own() bool { return m == SelfCompactAll || m == SelfCompactSlidingWindow }

// words returns how many words a summary may have: five per eight tokens, which fits languages with an alphabet.
func words(m Mode, budget int) int {
	most := slidingWords
	if m.everything() {
		most = allWords
	}
	return max(min(most, budget*5/8), leastWords)
}

// sections lists the sections that a summary must have. If no message that stays shows the current state, they include
// the current state and the next step.
func sections(m Mode) string {
	parts := []string{
		"Goals: what the user wants overall, with any wish or rule they set, in their own words where the wording matters.",
		"What happened: the course of events in order, what was done and what came of it, and what was decided and why.",
		"Important details: every name that may be needed again, letter for letter: file paths, URLs, ids, ticket and " +
			"version numbers, " +
			"amounts, dates, names of people. Leave one out only if it is settled for good.",
		"Errors and fixes: what went wrong, how it was solved or what was tried in vain, and what the user said about it.",
	}
	if m.everything() {
		parts = append(parts,
			"Current state: what is being worked on right now and how far it is.",
			"Next step, if one is plain: what was about to be done, with a direct quote of the latest request that shows it.")
	}
	parts = append(parts, "Lookup hints: a few words or ids by which the hidden messages are best found when searched.")
	for i, p := range parts {
		parts[i] = fmt.Sprintf("%d. %s", i+1, p)
	}
	return strings.Join(parts, "\n")
}

// Prompt returns a mode's instruction for a summary of at most budget tokens.
func Prompt(m Mode, budget int) string {
	return promptIntro(m) + "Use these sections, and leave out those that would be empty:\n" + sections(m) + "\n\n" +
		fmt.Sprintf("Write at most %d words, and nothing but the summary.", words(m, budget))
}

// promptIntro says what will happen to the conversation, and how to write.
func promptIntro(m Mode) string {
	conversation, whom, whose := "a conversation between an AI assistant and its user", "the assistant", "its"
	if m.own() {
		conversation, whom, whose = "the conversation above", "you", "your"
	}
	part, rest := "The beginning of "+conversation, " What follows the beginning stays visible."
	if m.everything() {
		part, rest = strings.ToUpper(conversation[:1])+conversation[1:], ""
	}
	what := fmt.Sprintf("%s is about to be hidden from %s, because %s context window is nearly full.%s", part, whom, whose,
		rest)
	if m.own() {
		what = frame.System + " " + what +
			" Stop your work for now. Do not call a tool, do not answer what was asked, do not go on with the task."
	}
	return what + " Your summary takes its place, and is all that is left in view of it.\n\n" +
		"Write it in the first person, as the assistant's own memory, and in the language of the conversation. Be " +
		"factual: nothing that was not " +
		"said or done, no advice, no address to anybody. If there is an earlier summary, work all of it in that still " +
		"matters: what it holds and " +
		"yours does not is gone.\n\n"
}
