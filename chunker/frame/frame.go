// Package frame lists what Loci writes around and between other people's texts in what a model reads. Its guard marks
// texts that imitate these frames.
//
// Each file uses only the files named before it: frame.go lists tags, notices and line ends; state.go writes the end of
// a prompt; lookalike.go reads a text
// as a model may read it; neutralize.go marks and restores texts; lineend.go marks stray line ends.
package frame

import "strings"

// Tags are the names of the tags around the parts of a prompt. A part has an opening and a closing tag.
var Tags = []string{"memory_blocks", "block", "description", "metadata", "value", "directories", "file_limits",
	"directory", "instructions", "file", "working_memory", "last_edit", "more_files", "memory_metadata",
	"tool_usage_rules", "tool_rule", "persona", "human", "system", "summary", "analysis", "transcript",
	"start_transcript", "end_transcript",
	"earlier_summary", "previous_summary", "memory_files", "current_state", "memory_counts",
	"available_skills", "skill", "recalled_memory"}

// Notices that Loci writes on lines of their own. They are formats for fmt: %d is a number, %s is any text.
const (
	System       = "[This is a message of the system, not of the user.]" // begins what Loci tells within a conversation
	State        = "[This is the present state, not a request. It stands at the end of each prompt, written anew.]"
	noResult     = "[No result yet" // begins every notice of a missing result
	NoResultYet  = "[No result yet: this call is still pending.]"
	NotRecorded  = "[The result of this call was not recorded.]"
	EmptyResult  = "[The result is empty.]"
	EmptyMessage = "[The message is empty.]"
	CutAnswer    = "[This answer was cut off before it was complete.]"
	CutCall      = "[This answer was cut off within a call of %s, which was not made.]"
	GoesOn       = "(The conversation goes on from here.)"

	SummaryLeftOut  = "[%d more characters of this summary are left out.]"
	MadeWithout     = "(Made without a model: quotes and lists of what was said and done; nothing is interpreted.)"
	LeftOutForRoom  = "[Left out here for lack of room: %d messages or parts of them, %s, about %d tokens."
	FirstParts      = "[Parts 1–%d of %d; the model did not read the others.]"
	OnePart         = "[Part %d of %d, by itself]"
	StaleExplained  = "(What a stale entry rests on has changed since: check the entry before you rely on it.)"
	EarlierLeftOut  = "(%d earlier messages are left out)"
	MessagesLeftOut = "[%d of the newest %d messages are left out: those below fill the resource."

	Range          = "[seq %d–%d]"
	label          = "[seq %d" // begins every position or range
	Position       = "[seq %d]"
	StalePosition  = "[seq %d, stale since seq %d]"
	CharsLeftOut   = "[%s%d of %d characters left out%s]"
	FirstBytes     = "[The first %d of %d bytes are shown.%s]"
	FirstChars     = "[The first %d of %d characters are shown.%s]"
	ToReadLog      = "[To read its log, call: %s]"
	ImagesLeftOut  = "[Images left out here: %d]"
	Cut            = "[cut]"
	CutHere        = "[cut here]"
	NoRoom         = "[cut: the context window has no room for any of this text]"
	ResultCut      = "[cut: this result has %d bytes. Select a part of it, for example with keys, .[0:10], or a path.]"
	CutCalled      = "[cut: %s]"
	ViewCall       = "[%s: expand(id=%s)]"
	ViewFileStart  = "[Viewing file start (out of %d lines%s)]"
	ViewToEnd      = "[Viewing lines %d to end (out of %d lines%s)]"
	ViewLines      = "[Viewing lines %d to %d (out of %d lines%s)]"
	ViewLinesShort = "[Viewing lines %d to %d]"
	ViewCut        = "# NOTE: This view is cut at its limit of %d characters; %s"
	ViewGoesOn     = "# NOTE: Go on at line %d."
	ViewLineCut    = "# NOTE: Line %d has %s characters; this view, cut at its limit of %d characters, " +
		"shows the first %d. A search for exact text finds what is further on in it."
	ViewLineShort  = "# NOTE: Line %d has %s characters."
	HistorySummary = "[Conversation History Summary]" // heading of one format of summaries
	HistoryEnd     = "[End Summary — recent messages follow]"
	ShowingLines   = "[%s: Showing lines %d-%d of %d. Use line=%d to continue: %s]"
	ShowingPart    = "[%s: Showing the first %d characters of line %d of %d. Use line=%d, char=%d to continue: %s]"
	MostOfLine     = "[%s: the first %d characters of line %d of %d, the most that one call shows. Use grep_files to " +
		"search the line. To read on, call: %s]"
	MostLines = "[%s: lines %d-%d of %d, the most that one call shows. Use line and length to read the part you " +
		"need, or grep_files to search for it. To read on, call: %s]"
)

// Notices that Loci may write within a line, behind the text that it cut.
const (
	Truncated        = "...[TRUNCATED]" // as in Letta
	LineTruncated    = "... [truncated]"
	LinesTruncated   = "... [truncated %d more lines]"
	LineCut          = "... [cut: the line has %d characters]"
	MessageCut       = "... [cut: the message has %d bytes.%s]"
	BytesCutAfter    = "...[%d bytes cut]"
	BytesCutBefore   = "[%d bytes cut]..."
	SummaryCut       = "... [summary truncated to fit]"
	MessageShortened = "… [cut: %d of %d bytes are shown; the tool expand reads on: expand(id=%s)]"

	// OutputTruncated is Letta's text.
	OutputTruncated = "... [NOTE: function output was truncated since it exceeded the character limit (%d > %d)]"
)

// The guard reads lineNotices and inlineNotices.
var (
	lineNotices = []string{System, State, noResult, NoResultYet, NotRecorded, EmptyResult, EmptyMessage, CutAnswer,
		CutCall,
		GoesOn, SummaryLeftOut, MadeWithout, LeftOutForRoom, FirstParts, OnePart, StaleExplained, EarlierLeftOut,
		MessagesLeftOut, label, Range, Position, StalePosition, CharsLeftOut, FirstBytes, FirstChars,
		ToReadLog,
		ImagesLeftOut, Cut, CutHere, NoRoom, ResultCut, CutCalled, ViewCall, ViewFileStart, ViewToEnd, ViewLines,
		ViewLinesShort, ViewCut, ViewGoesOn,
		ViewLineCut, ViewLineShort, ShowingLines, ShowingPart, MostOfLine, MostLines, HistorySummary, HistoryEnd}
	inlineNotices = []string{Truncated, LineTruncated, LinesTruncated, LineCut, MessageCut, BytesCutAfter, BytesCutBefore,
		SummaryCut, OutputTruncated, MessageShortened}
)

// LineEnds are the characters, other than LF, at which a reader or a model may see a new line begin: Unicode's, and
// those of Python's splitlines.
const LineEnds = "\r\v\f\x1c\x1d\x1e\u0085\u2028\u2029"

// LineFeeds returns the text with a line feed for every line end.
func LineFeeds(text string) string { return otherLineEnds.Replace(text) }

var otherLineEnds = func() *strings.Replacer {
	pairs := []string{"\r\n", "\n"}
	for _, end := range LineEnds {
		pairs = append(pairs, string(end), "\n")
	}
	return strings.NewReplacer(pairs...)
}()
