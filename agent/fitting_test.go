package agent_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/recall"
)

// A prompt is not refused for its former size if another request compacts its conversation meanwhile.
func TestAPromptThatAnotherRequestMadeFitIsNotRefused(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	a := create(t, s, agent.New{Name: "a", WindowLimit: new(8_000), Settings: agent.Settings{
		CompactionSettings: json.RawMessage(`{"policy":{"steps":[{"step":"message_count","max_messages":2}]}}`)}})
	var all []recall.Draft
	for i := range 25 {
		id := fmt.Sprintf("c%d", i)
		all = append(all, said(recall.User, fmt.Sprintf("question %d", i)+strings.Repeat(" word", 100)),
			recall.Draft{Role: recall.Assistant, Content: []recall.Part{call(id, "bash", `{"cmd":"ls"}`)}},
			returned(recall.Part{CallID: id, Text: "out" + strings.Repeat("result of line\n", 150)}),
			said(recall.Assistant, fmt.Sprintf("answer %d", i)+strings.Repeat(" said", 100)))
	}
	say(t, s, a, all...)
	readings := 0
	s.Now = func() time.Time {
		if readings++; readings == 2 { // the first request has assembled its prompt, but not compacted yet
			handOut(t, s, a, agent.OpenAI)
		}
		return time.Now()
	}
	handOut(t, s, a, agent.OpenAI)
	if readings < 3 {
		t.Errorf("the clock was asked %d times: no other request came between", readings)
	}
}
