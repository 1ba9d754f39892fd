package loop

import (
	"encoding/json"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/recall"
)

// call is a tool call, with the position of its message and the index of its part.
type call struct {
	done
	id       string
	position int
	part     int
	broken   bool // the tool does not exist, or the arguments are not JSON
	refused  bool // refused by the rules, so that it does not count for them
}

// lastPosition is behind every message.
const lastPosition = 1<<31 - 1

func hasCalls(answer recall.Message) bool {
	return slices.ContainsFunc(answer.Content, func(p recall.Part) bool { return p.Type == recall.ToolCall })
}

func isObject(text string) bool {
	var o map[string]json.RawMessage
	return json.Unmarshal([]byte(text), &o) == nil
}

// failedWith returns a function that returns the result of a call that was not run. p has the call's id, the text and
// the approval.
func failedWith(d recall.Draft, p recall.Part) func(pgx.Tx) (recall.Draft, error) {
	p.Type, p.IsError = recall.ToolReturn, true
	d.Role, d.Content = recall.Tool, []recall.Part{p}
	return func(pgx.Tx) (recall.Draft, error) { return d, nil }
}

// approvalIn returns the approval to store with a call's result. approved are the calls that the client approved.
func approvalIn(approved []string, callID string) recall.Approval {
	if slices.Contains(approved, callID) {
		return recall.Approved
	}
	return ""
}
