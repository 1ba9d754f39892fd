package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/compaction/store"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/chat"
	"github.com/loci-memory/loci/recall/tokens"
)

// Assemble returns what an agent's model would be sent next in a conversation. An empty conversation is the default
// one; an empty format is the model's. Assemble does not compact.
func (s *Store) Assemble(ctx context.Context, org db.Org, agentID, conversation string, f Format) (Prompt, error) {
	return s.assembleAt(ctx, org, PromptTarget{AgentID: agentID, Conversation: conversation, Format: f})
}

// PromptTarget says which prompt to assemble.
type PromptTarget struct {
	AgentID       string
	Conversation  string // an id; empty: the default one
	Format        Format // empty: the model's
	AnswerPending bool   // calls without a result get one that says that they still wait
	NotEmpty      bool   // a prompt without a message is an error

	// Changes that a request makes to its prompts: the model's handle, the instructions, a text behind them, tools besides
	// the agent's, and the names of the tools that may be called. Nil changes nothing.
	Model, System *string
	Addition      string
	MoreTools     []Definition
	OnlyTools     []string
	MustCall      string // the tool that the model must call; empty: it may choose

	Window     int             // tokens of the window; 0: the agent's
	Compaction json.RawMessage // an object of compaction settings that override the agent's and the conversation's

	Recall *RecallSettings // what is recalled for the newest message; nil: as the agent's settings say

	Around []string // texts that the caller sends besides the messages; they count as the tools do

	WithoutFiles bool  // leaves out the texts of open files, and says so
	LettasLayout bool  // shows the state in the system prompt, where Letta has it, rather than at the end
	Trial        Trial // changes a prompt to find out what its provider refuses

	view   *recall.ContextView // replaces the conversation's view; nil keeps it
	last   *int                // position of the last message; nil: the conversation's last
	flush  int                 // position at which the prompt's silent turn began; 0: it is no silent turn
	before int                 // a silent turn's prompt leaves out messages from this position on; 0: none
	must   string              // the tool that the model must call; empty: it may choose
	fits   bool                // refuses, before reading it, a message that no compaction can make fit
}

// Trial changes a prompt that is not stored, to find out what its provider refuses.
type Trial struct {
	Message       string // a user's message instead of all messages; empty keeps them
	WithoutMemory bool   // leaves out blocks, the index of memory files and the working memory
}

// recallOf returns the settings of recall in force for a prompt; nil if nothing is recalled.
func (at PromptTarget) recallOf(a Agent) *RecallSettings {
	if at.Recall != nil {
		return at.Recall
	}
	return a.Settings.Recall
}

// toolsOf returns the tools of the prompt for an agent that has agentTools. A tool of the request replaces the agent's
// tool with the same name.
func (at PromptTarget) toolsOf(agentTools []Definition) []Definition {
	has := func(all []Definition, name string) bool {
		return slices.ContainsFunc(all, func(d Definition) bool { return d.Name == name })
	}
	all := slices.Clone(at.MoreTools)
	for _, d := range slices.Backward(agentTools) {
		if !has(at.MoreTools, d.Name) {
			all = slices.Insert(all, 0, d)
		}
	}
	if at.OnlyTools == nil {
		return all
	}
	return slices.DeleteFunc(all, func(d Definition) bool { return !slices.Contains(at.OnlyTools, d.Name) })
}

// assembleAt assembles a prompt in a read-only transaction. Before that, it marks stale entries in the conversation's
// working memory.
func (s *Store) assembleAt(ctx context.Context, org db.Org, target PromptTarget) (p Prompt, err error) {
	c, err := s.Recall.Conversation(ctx, org, target.AgentID, target.Conversation)
	if err != nil {
		return p, err
	}
	if err := db.UnlessFull(s.Working.Refresh(ctx, org, c)); err != nil {
		return p, err
	}
	err = db.Snapshot(ctx, s.DB, func(tx pgx.Tx) error {
		p, err = s.With(tx).assemble(ctx, org, target)
		return err
	})
	return p, err
}

func (s *Store) assemble(ctx context.Context, org db.Org, target PromptTarget) (p Prompt, err error) {
	p, base, err := s.prepare(ctx, org, target)
	if err != nil {
		return p, err
	}
	if target.fits {
		if err := s.refuseNewest(ctx, org, p); err != nil {
			return p, err
		}
	}
	if err := s.readView(ctx, org, target, &p); err != nil {
		return p, err
	}
	if target.recallOf(base) != nil {
		if err := s.readNotes(ctx, org, &p); err != nil {
			return p, err
		}
	}
	if target.Trial.Message != "" {
		p.unread, p.Messages = recall.Window{}, []recall.Message{{Position: p.Conversation.Messages + 1, Role: recall.User,
			Content: []recall.Part{{Type: recall.Text, Text: target.Trial.Message}}}}
	}
	if err := s.compileFitting(ctx, org, base, target, &p); err != nil {
		return p, err
	}
	v, err := store.ViewOf(p.Conversation, p.Messages, store.PromptOverhead{Has: toolset(p.definitions)})
	if err != nil {
		return p, err
	}
	p.convert(v, target.AnswerPending)
	p.Tokens = p.counted.in(p.total())
	return p, nil
}

// prepare returns a prompt without its messages and its system prompt: the settings in force, the tools and how tokens
// are counted. base is the agent without the settings of the conversation.
func (s *Store) prepare(ctx context.Context, org db.Org, target PromptTarget) (p Prompt, base Agent, err error) {
	if base, err = s.Agent(ctx, org, target.AgentID); err != nil {
		return p, base, err
	}
	if p.Conversation, err = s.Recall.Conversation(ctx, org, target.AgentID, target.Conversation); err != nil {
		return p, base, err
	}
	if target.view != nil {
		p.Conversation.ContextView, p.Conversation.Reported = *target.view, 0
	}
	around, err := s.surroundings(ctx, org, target.AgentID)
	if err != nil {
		return p, base, err
	}
	p.Seq, p.assembled = around.Seq, around.At
	if target.System != nil {
		base.System = *target.System
	}
	if p.Agent = base.in(p.Conversation); target.Model != nil {
		p.Agent.Model, p.Agent.WindowLimit, p.Agent.Settings.ModelSettings = target.Model, nil, nil
	}
	if target.Window > 0 {
		p.Agent.WindowLimit = &target.Window
	}
	if err := s.setPolicy(around.policiesAbove, target.Compaction, &p); err != nil {
		return p, base, err
	}
	if p.format = target.Format; p.format == "" {
		p.format = p.Agent.format()
	}
	base.InForce = p.policy.Policy
	base = base.queriesUnder(p.policy.Policy, p.Agent.InConversation, target.Compaction)
	p.hasFolder = around.HasFolder
	p.must, p.definitions = target.MustCall, target.toolsOf(s.withMust(s.definitions(base, p.hasFolder), target.must))
	if target.Addition != "" {
		base.System = base.Instructions(p.definitions) + "\n\n" + target.Addition
	}
	p.tools = ToolsIn(p.format, p.definitions)
	model := p.Agent.model()
	p.count = func(text string) int { return s.Tokens.Count(model, text) }
	p.compose = func(text string) tokens.Composition { return s.Tokens.Compose(model, text) }
	if p.calibration, err = s.calibrationOf(ctx, org, model); err != nil {
		return p, base, err
	}
	count := p.tally(&p.ofTools)
	for _, t := range p.tools {
		p.counted.Tools += count(string(t))
	}
	for _, text := range target.Around {
		p.counted.Tools += count(text)
	}
	return p, base, nil
}

// surroundings is data outside the rows of the agent and its conversation that changes the agent's prompt.
type surroundings struct {
	policiesAbove
	Seq       int64 // seq of the agent's newest event; 0 if there is none
	HasFolder bool  `db:"has_folder"` // a folder is attached
	At        time.Time
}

func (s *Store) surroundings(ctx context.Context, org db.Org, agentID string) (surroundings, error) {
	return db.One[surroundings](ctx, s.DB, `
		SELECT coalesce((SELECT seq FROM agent_heads WHERE org = $1 AND agent_id = $2), 0) AS seq,
		       now() AS at,
		       EXISTS (SELECT FROM agent_folders WHERE org = $1 AND agent_id = $2) AS has_folder,
		       (SELECT policy FROM server_policies ORDER BY key DESC LIMIT 1) AS server,
		       (SELECT policy FROM organizations WHERE org = $1) AS organization`, org, agentID)
}

// convert converts the messages of the prompt's view to its format, and counts them. If answer is set, pending calls
// get placeholders as results.
func (p *Prompt) convert(v clip.View, answer bool) {
	shown := chat.ReadableBy(p.Agent.model(), v.AsShown())
	p.write(shown)
	if p.Pending = chat.Pending(shown); answer && len(p.Pending) > 0 {
		waiting := p.counted.Messages
		p.write(chat.AnswerPending(shown))
		p.placeholders = p.counted.Messages - waiting
	}
	p.counted.Messages += p.unread.Tokens
	if v.Summary != nil {
		p.summary = v.SummaryText()
		p.counted.Summary = tokens.PerMessage + p.count(p.summary)
		p.counted.Messages -= p.counted.Summary
	}
	p.countAll()
}

// write converts messages and the state to the prompt's format, and counts the messages.
func (p *Prompt) write(shown []recall.Message) {
	settings, n := p.Agent.Settings.Prompt, 0
	shown = settings.enveloped(slices.Concat(p.system.preloaded, withNotes(shown, p.notes)), p.Agent.Zone())
	if !p.system.asLetta {
		shown = chat.WithState(shown, settings.role(), p.system.state())
	}
	p.ofMessages = tokens.Composition{}
	count := p.tally(&p.ofMessages)
	if p.format == Anthropic && settings.marks() {
		p.messages, n, p.marks = chat.AnthropicMarked(shown, len(p.tools) > 0, count)
	} else {
		p.messages, n = converted(p.format, shown, count)
	}
	p.counted.Messages = max(n-p.system.stateTokens(p.count)-p.system.preloadedTokens(p.count), 0)
}

// readView reads the view of the conversation. If the view is too long, it reads the newest messages and only counts
// the others. The prompt of a silent turn ends with the turn's own messages; no provider has counted it.
func (s *Store) readView(ctx context.Context, org db.Org, target PromptTarget, p *Prompt) error {
	c := p.Conversation
	if target.last != nil {
		view, err := s.Recall.ViewUntil(ctx, org, c, *target.last, plan.MaxMessages)
		if err == nil {
			p.logged, p.Messages = view[0], view[1:]
		}
		return err
	}
	if target.flush > 0 {
		view, err := s.Recall.ViewOfFlush(ctx, org, c, target.flush)
		if err != nil {
			return err
		}
		p.Conversation.Reported, p.must, p.logged = 0, target.must, view[0]
		p.Messages = slices.DeleteFunc(view[1:], func(m recall.Message) bool {
			return target.before > 0 && m.Purpose == "" && m.Role != recall.Summary && m.Position >= target.before
		})
		return nil
	}
	if !tooLong(c) {
		view, whole, err := s.Recall.NewestView(ctx, org, c)
		if err != nil {
			return err
		}
		if p.logged, p.Messages = view[0], view[1:]; whole {
			return nil
		}
	}
	w, err := s.Recall.Window(ctx, org, c.AgentID, c.ID)
	if err != nil {
		return err
	}
	p.logged, p.Messages = w.Messages[0], w.Messages[1:]
	p.unread = recall.Window{Count: w.Count - len(w.Messages), Tokens: w.Tokens}
	for _, m := range p.Messages {
		p.unread.Tokens -= m.Tokens
	}
	return nil
}

// ToolsIn returns tool definitions in a format.
func ToolsIn(f Format, definitions []Definition) []json.RawMessage {
	all := make([]json.RawMessage, len(definitions))
	for i, definition := range definitions {
		if f == OpenAI {
			all[i] = chat.Encode(map[string]any{"type": "function", "function": definition.Schema})
			continue
		}
		d := schemaOf(definition)
		if f == Responses { // schemas are strict here by default, and ours have optional arguments
			d.Strict = cmp.Or(d.Strict, new(false))
			all[i] = chat.Encode(struct {
				Type string `json:"type"`
				schema
			}{"function", d})
			continue
		}
		all[i] = chat.Encode(struct {
			Name        string          `json:"name"`
			Description string          `json:"description"`
			InputSchema json.RawMessage `json:"input_schema"`
		}{d.Name, d.Description, d.Parameters})
	}
	return all
}

// schema is the definition of a tool.
type schema struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      *bool           `json:"strict,omitempty"`
}

func schemaOf(definition Definition) (s schema) {
	if err := json.Unmarshal(definition.Schema, &s); err != nil {
		panic("agent: the definition of a tool is broken: " + err.Error()) // definitions are checked before
	}
	return s
}
