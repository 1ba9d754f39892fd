package gateway

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/agent/loop/model"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/tokens"
	"github.com/loci-memory/loci/server/rest"
)

// Time limits of the memory's part in a request.
const (
	keepTimeout = 10 * time.Second // until its messages are stored
	waitTimeout = 2 * time.Second  // for that, before the end of an answer goes out
)

// exchange is a request with messages, and its answer.
type exchange struct {
	*Gateway
	*Call
	dialect *dialect
	cred    credentials
	mode    string // of agent.GatewayModes
	body    *body
	model   string // as the client names it

	away    bool              // the memory takes no part
	place   place             // of the request's messages; without an agent if the memory takes no part
	kept    *place            // of the messages, if they are stored already
	notes   []recall.Note     // to be kept, without their conversation
	offered []json.RawMessage // the agent's tools that the request offers, in its form
}

// converse serves a request with messages.
func (x *exchange) converse(raw []byte) error {
	var err error
	if x.body, err = readBody(raw); err != nil {
		return rest.Malformed("body: " + err.Error())
	}
	x.body.readItems(x.dialect.list)
	x.model = x.body.text("model")
	upstream, name, err := x.upstream()
	if err != nil {
		return err
	}
	if name != x.model {
		x.body.replace("model", name)
	}
	if !x.away {
		if err := x.remember(x.Request.Context()); err != nil {
			return err
		}
	}
	if err := x.ask(); err != nil {
		return err
	}
	r, stored, inside := x.Request, x.storeRequest(), &rounds{upstream: upstream, tools: map[string]bool{}}
	sent := x.body
	if definitions := x.offers(); len(definitions) > 0 {
		x.offered, inside.stored, sent = x.toolsIn(definitions), stored, x.body.with()
		for _, d := range definitions {
			inside.tools[d.Name] = true
		}
		sent.withTools(x.offered)
	}
	request := sent.bytes()
	answer, err := x.send(r.Context(), r, passing{upstream: upstream, path: x.Path, cred: x.cred,
		body: bytes.NewReader(request), bytes: int64(len(request))})
	if err != nil {
		stored.wait(keepTimeout)
		return unreachable(r.Context(), upstream, err)
	}
	defer answer.Body.Close()
	if len(x.offered) > 0 {
		return x.converseWithTools(answer, inside)
	}
	w := x.Answer
	answerHeader(w.Header(), answer)
	x.tell(w.Header())
	w.WriteHeader(answer.StatusCode)
	keep := func([]byte) {}
	if answer.StatusCode == http.StatusOK {
		keep = func(whole []byte) { x.keepAnswer(r.Context(), stored, request, whole) }
	}
	err = copyAnswer(w, answer, x.dialect, keep)
	stored.wait(keepTimeout)
	if err != nil {
		x.Log.DebugContext(r.Context(), "an answer of a provider was cut", "upstream", upstream.Name, "error", err)
		panic(http.ErrAbortHandler) // the client sees that the answer is not whole
	}
	return nil
}

// tell adds the headers that say what the memory did.
func (x *exchange) tell(h http.Header) {
	if x.away {
		h.Set(memoryHeader, "unavailable")
		return
	}
	h.Set(memoryHeader, x.mode)
	h.Set(agentHeader, x.place.agent.ID)
	if x.stores() {
		h.Set(conversationHeader, cmp.Or(x.place.forkID, x.place.conversation))
	}
}

// upstream returns the provider of the request's model, and the model's name there.
func (x *exchange) upstream() (model.Upstream, string, error) {
	return x.chosen(x.Request, x.dialect.format, x.model, x.cred)
}

// chosen returns the upstream that a request names, or that its model has. A request with the server's own credential
// may only ask for models that the upstream serves.
func (g *Gateway) chosen(r *http.Request, format, asked string, cred credentials) (model.Upstream, string, error) {
	if name := r.Header.Get(upstreamHeader); name != "" {
		u, found := g.Upstreams.Named(name)
		if !found || (u.API == model.FormatAnthropic) != (format == model.FormatAnthropic) {
			return u, asked, rest.Unprocessable("header."+upstreamHeader,
				"there is no upstream "+db.Short(name)+" for this path")
		}
		if !cred.own && !u.Serves(asked) {
			return u, asked, notServed(asked)
		}
		return u, asked, nil
	}
	u, name, found := g.Upstreams.For(format, asked)
	if found && (cred.own || u.Serves(name)) {
		return u, name, nil
	}
	if cred.own {
		for _, u := range g.Upstreams {
			if (u.API == model.FormatAnthropic) == (format == model.FormatAnthropic) {
				return u, asked, nil
			}
		}
	}
	return u, asked, notServed(asked)
}

func notServed(asked string) error {
	return rest.Forbidden("The operator of this server does not offer the model " + db.Short(asked) +
		" with the server's own credential: name another, or send a credential of your provider")
}

// unreachable is the error for a provider that does not answer.
func unreachable(ctx context.Context, u model.Upstream, err error) error {
	if _, is := errors.AsType[*rest.Problem](err); is || ctx.Err() != nil {
		return err
	}
	return rest.StatusProblem(http.StatusBadGateway, "The provider "+u.Name+" cannot be reached. Try again in a moment")
}

// remember finds the request's conversation, and adds what is recalled. While the memory cannot be reached, the request
// goes on without, unless the operator wants it refused.
func (x *exchange) remember(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(db.WithPatience(ctx, x.FindWithin), x.FindWithin)
	defer cancel()
	before, begin := slices.Clone(x.body.edits), now()
	err := x.prepare(ctx)
	if err == nil {
		x.found.Store(now().UnixNano())
	}
	if err == nil || ctx.Err() == nil && rest.ProblemOf(err).GetStatus() < http.StatusInternalServerError {
		return err
	}
	if x.OnFailure == Refuse {
		return err
	}
	x.leaveAlone(begin)
	x.Log.WarnContext(ctx, "a request passes the gateway without memory", "error", err)
	x.away, x.body.edits = true, before
	return nil
}

//nolint:contextcheck // what follows a window has time of its own
func (x *exchange) prepare(ctx context.Context) (err error) {
	key := rest.Caller(ctx)
	p := place{org: rest.Org(ctx)}
	if p.agent, err = x.agentOf(ctx, key); err != nil {
		return err
	}
	if x.mode, err = x.modeOf(p.agent); err != nil {
		return err
	}
	if ctx, p.user, err = x.userOf(ctx, key, p.agent); err != nil {
		return err
	}
	//nolint:contextcheck // the rest of the request has more time than ctx
	x.Request = x.Request.WithContext(db.WithUser(x.Request.Context(), db.UserOf(ctx)))
	among := []string(nil)
	p.units, among = readUnits(x.body.rawItems())
	p.system = x.dialect.systemOf(x.body, among)
	again := cmp.Or(x.Request.Header.Get("X-Stainless-Retry-Count"), "0") != "0"
	if x.place, err = x.find(ctx, p, x.named(), again); err != nil {
		return err
	}
	if x.mode == agent.GatewayObserve || len(x.place.units) == 0 {
		return nil
	}
	notes, err := x.notesOf(ctx)
	if err != nil {
		return err
	}
	var view *agent.FittedView
	if x.mode == agent.GatewayManage {
		if view, err = x.manage(ctx, notes); err != nil {
			return err
		}
		if ctx.Err() != nil { // the window took the time of what follows
			again, cancel := context.WithTimeout(x.Request.Context(), x.FindWithin)
			defer cancel()
			ctx = again
		}
	}
	if err := x.putBack(ctx, view); err != nil {
		return err
	}
	return x.recall(ctx, notes)
}

// modeOf returns the mode of a request: the one that it asks for, else that of its key, its agent or the server.
func (x *exchange) modeOf(a agent.Agent) (string, error) {
	asked := x.Request.Header.Get(modeHeader)
	if asked == "" {
		return cmp.Or(rest.Caller(x.Request.Context()).GatewayMode, a.GatewayMode(), x.Mode), nil
	}
	if !slices.Contains(agent.GatewayModes, asked) {
		return "", rest.Unprocessable("header."+modeHeader, "expected observe, remember or manage. Got: "+db.Short(asked))
	}
	return asked, nil
}

// named returns what a request says about its conversation.
func (x *exchange) named() named {
	n := named{name: strings.TrimSpace(x.Request.Header.Get(conversationHeader))}
	if x.dialect != responsesDialect {
		return n
	}
	n.response = x.body.text("previous_response_id")
	if id := x.body.text("conversation"); id != "" {
		n.name, n.appends = "openai "+id, true
	}
	var object struct {
		ID string `json:"id"`
	}
	if json.Unmarshal(x.body.field("conversation"), &object) == nil && object.ID != "" {
		n.name, n.appends = "openai "+object.ID, true
	}
	return n
}

// storing is the storage of a request's messages.
type storing struct {
	done  chan struct{}
	place place // behind them
	err   error
}

// wait waits until the messages are stored, but not longer than a limit, and reports whether they are.
func (s *storing) wait(limit time.Duration) bool {
	select {
	case <-s.done:
		return s.err == nil
	case <-time.After(limit):
		return false
	}
}

// storeRequest begins to store the request's messages.
func (x *exchange) storeRequest() *storing {
	s := &storing{done: make(chan struct{}), err: errNotStored}
	if x.away || !x.stores() {
		close(s.done)
		return s
	}
	ctx, cancel := context.WithTimeout(db.WithPatience(context.WithoutCancel(x.Request.Context()), keepTimeout),
		keepTimeout)
	go func() {
		defer close(s.done)
		defer cancel()
		if s.err = nil; x.kept != nil {
			s.place = *x.kept
		} else {
			s.place, s.err = x.keep(ctx, x.place)
		}
		for _, n := range x.notes {
			if s.err == nil {
				n.Conversation = s.place.conversation
				s.err = x.Recall.KeepNote(ctx, s.place.org, s.place.agent.ID, n)
			}
		}
		if s.err != nil {
			x.Log.WarnContext(ctx, "messages of the gateway are not stored; the next request of their client brings them again",
				"error", s.err)
		}
	}()
	return s
}

// stores reports whether the request says something, or goes on from a stored message.
func (x *exchange) stores() bool { return len(x.place.units) > 0 || x.place.exists }

var errNotStored = errors.New("the memory takes no part in the request")

// ask counts a request that the server pays for. While the memory is away, it is not counted.
func (x *exchange) ask() error {
	if x.cred.own || x.away {
		return nil
	}
	ctx, cancel := context.WithTimeout(db.WithPatience(x.Request.Context(), x.FindWithin), x.FindWithin)
	defer cancel()
	err := x.Ask(ctx, rest.Org(x.Request.Context()))
	if _, exceeded := db.QuotaExceeded(err); exceeded || err == nil || x.OnFailure == Refuse {
		return err
	}
	x.Log.WarnContext(ctx, "a request that the server pays for is not counted", "error", err)
	return nil
}

// keepAnswer reads an answer, counts its tokens if the server pays for them, and stores it.
func (x *exchange) keepAnswer(ctx context.Context, request *storing, sent, whole []byte) {
	answer, err := model.ReadAnswer(ctx, x.dialect.format, bytes.NewReader(whole), maxAnswerBytes)
	if !x.cred.own && !x.away {
		x.spend(ctx, sent, whole, answer.Usage)
	}
	if len(answer.Content) == 0 {
		x.Log.DebugContext(ctx, "an answer of a provider is not stored", "error", err)
		return
	}
	x.storeAnswer(ctx, request, storedAnswer{Answer: answer})
}

// storedAnswer is an answer with what only the model sees of it.
type storedAnswer struct {
	model.Answer
	before  []recall.Draft // calls of the agent's tools that the model made before it, with their results
	results []recall.Part  // of the calls of the agent's tools in it
}

// spend counts the tokens of a request and its answer: those that the provider counted, else an estimate.
func (x *exchange) spend(ctx context.Context, sent, whole []byte, counted model.Usage) {
	n := counted.Prompt + counted.Completion
	if n == 0 {
		n = tokens.Estimate(string(sent)) + tokens.Estimate(string(whole))
	}
	ctx, cancel := context.WithTimeout(db.WithPatience(context.WithoutCancel(ctx), waitTimeout), waitTimeout)
	defer cancel()
	if err := x.Spend(ctx, rest.Org(ctx), int64(n)); err != nil {
		x.Log.WarnContext(ctx, "the tokens of a request that the server pays for are not counted", "error", err, "tokens", n)
	}
}

// storeAnswer stores an answer behind the request's messages, once they are stored.
func (x *exchange) storeAnswer(ctx context.Context, request *storing, answer storedAnswer) {
	if !request.wait(waitTimeout) {
		return
	}
	p := request.place
	d := recall.Draft{Role: recall.Assistant, Content: answer.Content, Model: &x.model}
	if x.model == "" {
		d.Model = nil
	}
	if answer.ID != "" {
		d.StepID = &answer.ID
	}
	u := unit{Draft: d}
	if !x.named().appends {
		before := p.before
		if n := len(p.units); n > 0 {
			before = p.units[n-1].otid
		}
		u.otid = next(before, visible(d, answer.results))
	}
	p.units, p.fresh, p.system = answer.units(u), 0, ""
	ctx, cancel := context.WithTimeout(db.WithPatience(context.WithoutCancel(ctx), waitTimeout), waitTimeout)
	defer cancel()
	asked := p.behind
	p, err := x.keep(ctx, p)
	if err == nil && x.mode == agent.GatewayManage && answer.Usage.Prompt > 0 {
		err = x.report(ctx, p, asked, answer.Usage.Prompt)
	}
	if err != nil {
		x.Log.WarnContext(ctx, "an answer is not stored; the next request of its client brings it again", "error", err)
	}
}

// report notes a provider's count of a prompt that ended at a position.
func (x *exchange) report(ctx context.Context, p place, position, tokens int) error {
	c, err := x.Recall.Conversation(ctx, p.org, p.agent.ID, p.conversation)
	if err != nil {
		return err
	}
	return x.Agents.ReportUsage(ctx, p.org, c, position, tokens)
}
