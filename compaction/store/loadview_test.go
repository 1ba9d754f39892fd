package store_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/store"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/tokens"
)

func message(position int, role recall.Role, text string) recall.Message {
	return recall.Message{ID: "message", Position: position, Seq: int64(position), Role: role, Tokens: 100,
		Content: []recall.Part{{Type: recall.Text, Text: text}}}
}

// summarized returns a summary of the messages 2 and 3.
func summarized() recall.Message {
	m := message(4, recall.Summary, "S")
	m.Content[0].Stats = json.RawMessage(`{"from_position":2,"to_position":3,"from_seq":12,"to_seq":13,"how":"whole",
		"model":"m","words_before":"b","words_after":"a"}`)
	return m
}

// The messages of a view are counted for the model, if its tokens can be counted. An abridged message keeps the count
// of the log, because its text is not whole.
func TestMessagesOfAViewAreCounted(t *testing.T) {
	t.Parallel()
	abridged := message(6, recall.User, "abridged")
	abridged.Abridged = true
	messages := []recall.Message{summarized(), message(5, recall.User, "five!"), abridged}
	v, err := store.ViewOf(recall.Conversation{}, messages, store.PromptOverhead{Window: 900, Tokens: 70, ToolTokens: 30,
		Count: func(text string) int { return 1_000 * len(text) }})
	if err != nil || v.Window != 900 || v.Fixed != 70 || v.Tools != 30 || len(v.Messages) != 2 {
		t.Fatalf("got %+v, %v", v, err)
	}
	if got, want := v.Messages[0].Tokens, 5_004; got != want {
		t.Errorf("a message has %d tokens, want %d", got, want)
	}
	if got := v.Messages[1].Tokens; got != 100 {
		t.Errorf("an abridged message has %d tokens, want those of the log", got)
	}
	if v.Summary.Tokens <= 1_000 {
		t.Errorf("the summary has %d tokens", v.Summary.Tokens)
	}
	if messages[1].Tokens != 100 {
		t.Error("the caller's messages are changed")
	}
	if v, err = store.ViewOf(recall.Conversation{}, messages, store.PromptOverhead{}); err != nil ||
		v.Messages[0].Tokens != 100 {
		t.Errorf("without a count: got %d tokens, %v", v.Messages[0].Tokens, err)
	}
}

// A view's usage is the provider's report, else an estimate by the model's factor, rounded up.
func TestUsageOfAView(t *testing.T) {
	t.Parallel()
	messages := []recall.Message{message(2, recall.User, "two"), message(3, recall.User, "three")}
	reported := recall.Conversation{Usage: recall.Usage{Reported: 77, ReportedPosition: 2}}
	for _, c := range []struct {
		name     string
		c        recall.Conversation
		messages []recall.Message
		factor   tokens.Factor
		want     *clip.Usage
	}{
		{"a report is taken before an estimate", reported, messages, 2, &clip.Usage{PromptTokens: 77, Position: 2}},
		{"an estimate is of all messages", recall.Conversation{}, messages, 1.001,
			&clip.Usage{PromptTokens: 211, Position: 3}},
		{"without a factor there is none", recall.Conversation{}, messages, 0, nil},
		{"without messages there is none", recall.Conversation{}, nil, 2, nil},
	} {
		v, err := store.ViewOf(c.c, c.messages, store.PromptOverhead{Tokens: 10, Factor: c.factor})
		if err != nil || !cmp.Equal(v.Usage, c.want) {
			t.Errorf("%s: got %+v, %v, want %+v", c.name, v.Usage, err, c.want)
		}
	}
}

// A summary that a provider refused is replaced by another text, so that its own edits do not fit any more.
func TestEditsOfARefusedSummaryAreLeftOut(t *testing.T) {
	t.Parallel()
	c := recall.Conversation{ContextView: recall.ContextView{
		Clipped: json.RawMessage(`[{"position":0,"part":0,"chars":5},{"position":5,"part":0,"chars":6}]`)}}
	sum, next := summarized(), message(5, recall.User, "five")
	v, err := store.ViewOf(c, []recall.Message{sum, next}, store.PromptOverhead{})
	if err != nil || len(v.Edits) != 2 || v.Summary.Text != "S" || v.Summary.From != 2 || v.Summary.To != 3 ||
		v.Summary.FromSeq != 12 || v.Summary.ToSeq != 13 || v.Summary.How != clip.Whole || v.Summary.Model != "m" ||
		v.Summary.Before != "b" || v.Summary.After != "a" {
		t.Errorf("got %+v, %+v, %v", v.Edits, v.Summary, err)
	}
	sum.Refused = &recall.Refused{}
	if v, err = store.ViewOf(c, []recall.Message{sum, next}, store.PromptOverhead{}); err != nil || len(v.Edits) != 1 ||
		v.Edits[0].Position != 5 {
		t.Errorf("refused: got the edits %+v, %v, want the message's", v.Edits, err)
	}
}

func TestAViewThatCannotBeRead(t *testing.T) {
	t.Parallel()
	empty, broken := summarized(), summarized()
	empty.Content, broken.Content[0].Stats = nil, json.RawMessage(`7`)
	for name, c := range map[string]struct {
		clipped  string
		messages []recall.Message
	}{
		"its edits are no list":           {`{}`, nil},
		"its summary has no content":      {`[]`, []recall.Message{empty}},
		"its summary's stats are no JSON": {`[]`, []recall.Message{broken}},
	} {
		of := recall.Conversation{ContextView: recall.ContextView{Clipped: json.RawMessage(c.clipped)}}
		if v, err := store.ViewOf(of, c.messages, store.PromptOverhead{}); err == nil {
			t.Errorf("%s: got %+v, want an error", name, v)
		}
	}
}
