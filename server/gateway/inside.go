package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/agent/loop/model"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/chat"
)

const (
	// maxRounds is how many answers in a row may only call the agent's tools. The next request offers none.
	maxRounds = 8
	// runTimeout is how long the calls of one answer may take.
	runTimeout = time.Minute
)

// rounds are the answers to a request, of which the client sees the last.
type rounds struct {
	upstream model.Upstream
	tools    map[string]bool // names of the offered tools
	stored   *storing
	said     []recall.Draft // answers that only called offered tools, each with its results
	usage    object         // of these; nil: unknown or none
	spent    model.Usage    // likewise
}

// converseWithTools passes on the answer to a request that offers the agent's tools, once it is whole: calls of these
// run here, and the model is asked again with their results, until it has said what is for the client.
func (x *exchange) converseWithTools(answer *http.Response, r *rounds) error {
	ctx := x.Request.Context()
	for {
		whole, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswerBytes+1))
		_ = answer.Body.Close() // all that is needed of it was read
		if err != nil || len(whole) > maxAnswerBytes || answer.StatusCode != http.StatusOK {
			return x.passLast(answer, r, whole, err)
		}
		said, err := model.ReadAnswer(ctx, x.dialect.format, bytes.NewReader(whole), maxAnswerBytes)
		if err != nil {
			return x.passLast(answer, r, whole, nil)
		}
		if len(r.said) == 2*maxRounds { // it calls what it was not offered
			r.tools = nil
		}
		own, others := r.split(said.Content)
		if len(own) == 0 || len(others) > 0 {
			return x.finish(answer, r, whole, said)
		}
		results, err := x.run(r, own)
		if err != nil {
			x.Log.WarnContext(ctx, "calls of tools in the gateway did not run", "error", err)
			return x.finish(answer, r, whole, said)
		}
		r.said = append(r.said, recall.Draft{Role: recall.Assistant, Content: said.Content},
			recall.Draft{Role: recall.Tool, Content: results})
		r.add(usageOf(x.dialect.format, whole), said.Usage)
		if err := x.ask(); err != nil {
			x.spendRounds(r, nil, model.Usage{})
			return err
		}
		next, err := x.sendAgain(ctx, r)
		if err != nil {
			return unreachable(ctx, r.upstream, err)
		}
		answer = next
	}
}

// split returns the calls of offered tools in an answer, and the client's.
func (r *rounds) split(content []recall.Part) (own, others []recall.Part) {
	for _, p := range content {
		switch {
		case p.Type != recall.ToolCall:
		case r.tools[p.Name]:
			own = append(own, p)
		default:
			others = append(others, p)
		}
	}
	return own, others
}

// add adds the usage of an answer that the client does not see.
func (r *rounds) add(usage object, counted model.Usage) {
	r.spent.Prompt += counted.Prompt
	r.spent.Completion += counted.Completion
	if r.usage == nil {
		r.usage = usage
		return
	}
	plus(r.usage, usage)
	r.usage = decoded(chat.Encode(r.usage)) // with all numbers in one form
}

// run runs calls of the agent's tools in the request's conversation.
func (x *exchange) run(r *rounds, calls []recall.Part) (results []recall.Part, err error) {
	ctx, cancel := context.WithTimeout(db.WithPatience(x.Request.Context(), keepTimeout), runTimeout)
	defer cancel()
	if !r.stored.wait(keepTimeout) {
		return nil, errNotStored
	}
	at := r.stored.place
	c, err := x.Recall.Conversation(ctx, at.org, at.agent.ID, at.conversation)
	if err != nil {
		return nil, err
	}
	caller := x.caller(c)
	for _, call := range calls {
		ctx := db.WithProvenance(ctx, db.Provenance{AgentID: at.agent.ID, ConversationID: at.conversation, Tool: call.Name})
		result, err := x.Tools.Run(ctx, caller, call.Name, chat.ShownArguments(call))
		if err != nil {
			return nil, err
		}
		results = append(results, recall.Part{Type: recall.ToolReturn, CallID: call.CallID, Text: result.Text,
			IsError: result.IsError})
	}
	return results, nil
}

// sendAgain sends the request with the calls and the results so far. After maxRounds it offers no tools of the agent.
func (x *exchange) sendAgain(ctx context.Context, r *rounds) (*http.Response, error) {
	request := x.body.with()
	if len(r.said) < 2*maxRounds {
		request.withTools(x.offered)
	}
	items := x.itemsOf(r.said)
	request.addItems(items)
	body := request.bytes()
	return x.send(ctx, x.Request, passing{upstream: r.upstream, path: x.Path, cred: x.cred, body: bytes.NewReader(body),
		bytes: int64(len(body))})
}

// itemsOf returns messages in the form of the request.
func (x *exchange) itemsOf(drafts []recall.Draft) (items []json.RawMessage) {
	// A message of a user stands before them, since some providers want one; it is left out again.
	view := []recall.Message{{Role: recall.User, Content: []recall.Part{{Type: recall.Text, Text: "-"}}}}
	for i, d := range drafts {
		view = append(view, recall.Message{Position: i + 1, Role: d.Role, Content: d.Content})
	}
	count := func(string) int { return 0 }
	switch x.dialect.format {
	case model.FormatAnthropic:
		items, _ = chat.Anthropic(view, count)
	case model.FormatResponses:
		items, _ = chat.Responses(view, count)
	default:
		items, _ = chat.OpenAI(view, count)
	}
	return items[1:]
}

// resultsIn returns the items of a Responses request that are results of calls.
func resultsIn(items []json.RawMessage) (results []json.RawMessage) {
	for _, item := range items {
		var of struct {
			Type string `json:"type"`
		}
		_ = json.Unmarshal(item, &of) // the item was made here
		if of.Type == "function_call_output" || of.Type == "custom_tool_call_output" {
			results = append(results, item)
		}
	}
	return results
}

// passLast passes an answer on that holds nothing for Loci: an error, or one that is not understood or cut.
func (x *exchange) passLast(answer *http.Response, r *rounds, whole []byte, cut error) error {
	x.spendRounds(r, nil, model.Usage{})
	w := x.Answer
	answerHeader(w.Header(), answer)
	x.tell(w.Header())
	w.WriteHeader(answer.StatusCode)
	_, err := w.Write(whole)
	if r.stored.wait(keepTimeout); err != nil || cut != nil || len(whole) > maxAnswerBytes {
		panic(http.ErrAbortHandler) // the client sees that the answer is not whole
	}
	return nil
}

// finish stores the last answer, and passes on what of it is the client's.
func (x *exchange) finish(answer *http.Response, r *rounds, whole []byte, said model.Answer) error {
	own, _ := r.split(said.Content)
	last := storedAnswer{Answer: said, before: r.said}
	if len(own) > 0 {
		results, err := x.run(r, own)
		if err != nil {
			x.Log.WarnContext(x.Request.Context(), "calls of tools in the gateway did not run", "error", err)
			for _, call := range own {
				results = append(results, recall.Part{Type: recall.ToolReturn, CallID: call.CallID, IsError: true,
					Text: "The tool could not run. Try again later."})
			}
		}
		last.results = results
	}
	x.spendRounds(r, whole, said.Usage)
	x.storeAnswer(x.Request.Context(), r.stored, last)
	shown := whole
	if len(r.said) > 0 || len(own) > 0 || x.dialect.format == model.FormatResponses {
		hidden := map[string]bool{}
		for _, call := range own {
			hidden[call.CallID] = true
		}
		shown = (&rewriting{format: x.dialect.format, hidden: hidden, usage: r.usage,
			tools: r.tools}).answer(whole)
	}
	w := x.Answer
	answerHeader(w.Header(), answer)
	x.tell(w.Header())
	w.Header().Set("Content-Length", strconv.Itoa(len(shown)))
	w.WriteHeader(answer.StatusCode)
	if _, err := w.Write(shown); err != nil {
		panic(http.ErrAbortHandler) // the client has left
	}
	return nil
}

// spendRounds counts the tokens of all answers to the request.
func (x *exchange) spendRounds(r *rounds, whole []byte, last model.Usage) {
	if x.cred.own || x.away {
		return
	}
	last.Prompt += r.spent.Prompt
	last.Completion += r.spent.Completion
	x.spend(x.Request.Context(), x.body.bytes(), whole, last)
}

// toolsIn returns definitions in the form of the request.
func (x *exchange) toolsIn(definitions []agent.Definition) []json.RawMessage {
	return agent.ToolsIn(formats[x.dialect.format], definitions)
}
