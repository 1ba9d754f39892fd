package recall

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/loci-memory/loci/db"
)

// LogEntry is one thing that was said or done in a conversation: a text, a thought, a call of a tool or its result.
type LogEntry struct {
	Seq       int64           `json:"seq"`
	At        string          `json:"at"` // UTC
	Type      string          `json:"type"`
	Tool      string          `json:"tool,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Text      string          `json:"text,omitempty"`
	IsError   bool            `json:"is_error,omitempty"`
}

// LogTypes are the types of entries of a log.
var LogTypes = []string{"user", "assistant", "reasoning", "tool_call", "tool_result"}

// LogQuery selects entries of a log; an empty field selects all.
type LogQuery struct {
	Range string // such as "120-188"; empty: the whole conversation
	Reach        // without a conversation: the conversation of the range's first message
	Types []string
	Tool  string
}

// LogSlice calls use with the entries of a range of an agent's log, in its order, with the long results whole. called
// maps the tools that are called in the range, whatever else the query selects, → the number of calls. ErrNotFound if
// the agent said nothing there; ErrInvalid if the query is wrong, or if the entries have more than 16 MiB. Other texts
// may have to wait while use runs.
func (s *Store) LogSlice(ctx context.Context, org db.Org, agentID string, q LogQuery,
	use func(entries []LogEntry, called map[string]int) error) error {
	r, err := q.seqs()
	if err != nil {
		return err
	}
	source, size, err := s.rangeOf(ctx, org, agentID, r, maxSeqRangeBytes)
	if err != nil {
		return err
	}
	release, err := s.hold(ctx, org, text{bytes: size})
	if err != nil {
		return err
	}
	defer release()
	var entries []LogEntry
	tools, called, bytes := map[string]string{}, map[string]int{}, 0
	for page, err := range s.rangePages(ctx, org, source, r) {
		if err != nil {
			return err
		}
		for _, m := range page {
			for _, e := range m.entries(tools) {
				if e.Type == "tool_call" {
					called[e.Tool]++
				}
				if !q.selects(e) {
					continue
				}
				if bytes += len(e.Text) + len(e.Arguments); bytes > maxWholeBytes {
					return db.Invalid("the entries have more than %d bytes: ask for a part of the range, a type or a tool",
						maxWholeBytes)
				}
				entries = append(entries, e)
			}
		}
	}
	return use(entries, called)
}

// seqs returns the range of a query.
func (q LogQuery) seqs() (seqRange, error) {
	for _, t := range q.Types {
		if !slices.Contains(LogTypes, t) {
			return seqRange{}, db.Invalid("type may be %s; got '%s'.", strings.Join(LogTypes, ", "), db.Short(t))
		}
	}
	r := seqRange{from: 1, to: math.MaxInt64, Reach: q.Reach}
	given := strings.TrimSpace(q.Range)
	if given == "" {
		return r, nil
	}
	if seq, err := strconv.ParseInt(given, 10, 64); err == nil {
		r.from, r.to = seq, seq
		return r, nil
	}
	parsed, ok := parseSeqRange(given)
	if !ok {
		return r, db.Invalid("seq is '%s'; it must be a range such as 120-188, or a number.", db.Short(given))
	}
	parsed.Reach = q.Reach
	return parsed, nil
}

func (q LogQuery) selects(e LogEntry) bool {
	return (len(q.Types) == 0 || slices.Contains(q.Types, e.Type)) && (q.Tool == "" || strings.EqualFold(q.Tool, e.Tool))
}

// entries returns the entries of a message. tools maps the ids of earlier calls → the names of their tools; the calls
// of the message are added.
func (m Message) entries(tools map[string]string) (all []LogEntry) {
	for _, p := range m.Content {
		e := LogEntry{Seq: m.Seq, At: m.CreatedAt.UTC().Format(time.RFC3339), Type: string(m.Role), Text: p.Text}
		switch p.Type {
		case ToolCall:
			tools[p.CallID] = p.Name
			e.Type, e.Tool, e.Text, e.Arguments = "tool_call", p.Name, "", argumentsOf(p.Input)
		case ToolReturn:
			e.Type, e.Tool, e.IsError = "tool_result", tools[p.CallID], p.IsError
		case Reasoning, SummarizedReasoning:
			e.Type = "reasoning"
		case Image:
			e.Text = "[image]"
		case Text:
		default:
			continue
		}
		all = append(all, e)
	}
	return all
}

// argumentsOf returns the arguments of a call as JSON; those that are no JSON as a text.
func argumentsOf(input string) json.RawMessage {
	if json.Valid([]byte(input)) {
		return json.RawMessage(input)
	}
	quoted, err := json.Marshal(input)
	if err != nil {
		panic(fmt.Sprintf("recall: a text is no JSON: %v", err)) // any text can be marshaled
	}
	return quoted
}
