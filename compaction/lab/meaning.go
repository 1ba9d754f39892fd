package lab

// Meaning says what a row or a column of a report means.
type Meaning struct {
	Name  string `json:"name"`
	Words string `json:"meaning"`
}

// Meanings returns what the rows of evidence mean, and the numbers beside them.
func Meanings() []Meaning {
	return []Meaning{
		{"in view", "An answer used it, and its prompt showed it."},
		{"expand", "Its message was shown shortened or cleared: one call of the tool expand away."},
		{"search", "Its message had left, and a summary did not name it: to be found by a search of the log."},
		{"lost", "Nothing in the prompt led to it."},
		{string(Path), "Paths of files, and addresses."},
		{string(Number), "Amounts, dates and versions."},
		{string(Name), "Names as in programs."},
		{string(ID), "Ids of calls, commits and other things; of questions, the messages that answer them."},
		{string(Quote), "Whole lines of an earlier message that an answer repeats."},
		{string(ErrorText), "Lines of a result that say what failed, and that an answer quotes."},
		{"of " + string(Requests), "A message of the user had said it."},
		{"of " + string(Decisions), "An answer with a decision had said it."},
		{"of " + string(Files), "A call that reads or changes a file had it, or its result."},
		{"of " + string(Commands), "Another call had it, or its result."},
		{"of " + string(Errors), "A result that says what failed had it."},
		{"read again", "The agent made the same call, or opened the same file, when the earlier result was out of view, " +
			"and no file was changed between."},
		{"cache breaks", "Prompts that changed a message sent before: a provider's cache is of no use from there on."},
		{"fired", "How often a step did something: edits that it made, prompts before which it was due, or compactions."},
		{"same", "An answer with a share of the context names at least 80 % of the facts in the answer with all of it."},
	}
}
