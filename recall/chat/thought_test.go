package chat_test

import (
	"testing"

	"github.com/loci-memory/loci/recall/chat"
)

// Thoughts at the beginning of a text are found, no matter how the text is cut into pieces.
func TestThoughtsAreTakenOutOfATextInAnyPieces(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, thought, said string }{
		{"<think>Hm, é.</think>Yes.", "Hm, é.", "Yes."},
		{"\n<think>\nHm.\n</think>\n\nYes. ", "Hm.\n", "Yes. "},
		{"<think>\n\n</think>\n\nYes.", "", "Yes."},
		{"<think>a</think> <think>b</think> Yes.", "ab", "Yes."},
		{"<thinking>Hm.</thinking>Yes.", "Hm.", "Yes."},
		{"<thought>Hm.</thought>Yes.", "Hm.", "Yes."},
		{"<think>a </thin b </think>c", "a </thin b ", "c"},
		{"<think>It goes on", "It goes on", ""},
		{"<think>It goes on</thi", "It goes on</thi", ""},
		{"<think>Hm.</think>", "Hm.", ""},
		{"<think>Hm.</think>\n\n", "Hm.", ""},
		{"  Yes. <think>no</think>", "", "  Yes. <think>no</think>"},
		{"Use <think> tags", "", "Use <think> tags"},
		{"<thin air>", "", "<thin air>"},
		{"<thi", "", "<thi"},
		{" \n", "", " \n"},
		{"", "", ""},
		{"<THINK>x</THINK>", "", "<THINK>x</THINK>"},
	} {
		runes := []rune(c.text)
		for size := 1; size <= len(runes)+1; size++ {
			thoughts, thought, said := chat.Thoughts{}, "", ""
			for from := 0; from < len(runes); from += size {
				more, text := thoughts.Add(string(runes[from:min(from+size, len(runes))]))
				thought, said = thought+more, said+text
			}
			more, text := thoughts.End()
			if thought, said = thought+more, said+text; thought != c.thought || said != c.said {
				t.Errorf("%q in pieces of %d: got the thought %q and the text %q, want %q and %q", c.text, size, thought, said,
					c.thought, c.said)
			}
		}
	}
}
