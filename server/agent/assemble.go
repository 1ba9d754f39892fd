package agent

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/compaction"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/event"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/chat"
	"github.com/loci-memory/loci/recall/tokens"
)

// Prompt is what an agent's model is sent next in a conversation, of one moment.
type Prompt struct {
	Agent        Agent // with the model and the window that it has in the conversation
	Conversation recall.Conversation
	Seq          int64            // of the agent's newest event of that moment
	Messages     []recall.Message // of the view, the system prompt aside
	Tokens       Tokens           // of what is sent

	format      Format
	system      prompt
	definitions []json.RawMessage
	tools       []json.RawMessage // the definitions in the format
	messages    []json.RawMessage // in the format
	inForce     recall.Message    // the system prompt that the conversation was last told
	summary     string            // as the model reads it; empty where nothing is hidden
	unread      recall.Window     // of a view that is too long to be sent, what is not in Messages
}

// Tokens are what the parts of a prompt take of the window: counted on exactly what is sent, as the agent's model reads it or by an estimate.
// Of a message it is its texts, the arguments of its calls and its images, and some for what the provider puts around them.
type Tokens struct {
	Total       int `json:"total"`
	Tools       int `json:"tools"`
	System      int `json:"base_instructions"`
	Blocks      int `json:"core_memory"`
	Rules       int `json:"tool_usage_rules"`
	Directories int `json:"directories"`
	Metadata    int `json:"memory_metadata"`
	Summary     int `json:"summary"` // of the messages that are hidden
	Messages    int `json:"messages"`
}

// Definitions are the tools that an agent's model is given: objects of name, description and parameters.
type Definitions func(hasFolder bool) []json.RawMessage

// maxView is the most messages that are sent. A longer view fits no window there is.
const maxView = 10_000

// Assemble puts together what an agent's model would be sent next in a conversation (the default one if it is empty), in a format (its
// model's own if that is empty). It is the one place where that is done: what makes room in a window does so before.
func (s *Store) Assemble(ctx context.Context, org db.Org, agentID, conversation string, f Format) (Prompt, error) {
	return s.assembleWanted(ctx, org, wanted{agentID: agentID, conversation: conversation, format: f})
}

// wanted names the prompt to assemble, as Assemble's parameters do.
type wanted struct {
	agentID, conversation string
	format                Format
	frame                 *recall.ContextView // in place of the conversation's own; nil keeps that
}

func (s *Store) assembleWanted(ctx context.Context, org db.Org, w wanted) (Prompt, error) {
	var p Prompt
	err := db.Tx(ctx, s.DB, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY`); err != nil {
			return err
		}
		var err error
		p, err = s.with(tx).assemble(ctx, org, w)
		return err
	})
	return p, err
}

func (s *Store) assemble(ctx context.Context, org db.Org, w wanted) (p Prompt, err error) {
	own, err := s.Agent(ctx, org, w.agentID)
	if err != nil {
		return p, err
	}
	if p.Conversation, err = s.Recall.Conversation(ctx, org, w.agentID, w.conversation); err != nil {
		return p, err
	}
	if w.frame != nil {
		p.Conversation.ContextView = *w.frame
	}
	if p.Seq, err = event.Head(ctx, s.DB, org, w.agentID); err != nil {
		return p, err
	}
	p.Agent = own.in(p.Conversation)
	if p.format = w.format; p.format == "" {
		p.format = p.Agent.format()
	}
	has, err := s.Files.HasFolder(ctx, org, w.agentID)
	if err != nil {
		return p, err
	}
	if s.Tools != nil {
		p.definitions = s.Tools(has)
	}
	p.tools = toolsIn(p.format, p.definitions)
	count := func(text string) int { return s.Tokens.Count(p.Agent.model(), text) }
	for _, t := range p.tools {
		p.Tokens.Tools += count(string(t))
	}
	if err := s.instruct(ctx, org, own, &p, count); err != nil {
		return p, err
	}
	if err := s.read(ctx, org, &p); err != nil {
		return p, err
	}
	shown, err := asShown(p.Conversation, p.Messages)
	if err != nil {
		return p, err
	}
	p.messages, p.Tokens.Messages = converted(p.format, shown, count)
	p.Tokens.Messages += p.unread.Tokens
	if len(shown) > 0 && shown[0].Role == recall.Summary {
		p.summary = shown[0].Text()
		p.Tokens.Summary = tokens.PerMessage + count(p.summary)
		p.Tokens.Messages -= p.Tokens.Summary
	}
	p.Tokens.Total = p.Tokens.Tools + p.Tokens.instructions() + p.Tokens.Summary + p.Tokens.Messages
	return p, nil
}

// read reads the view of the conversation; of one that is too long, the newest messages, and counts the others.
func (s *Store) read(ctx context.Context, org db.Org, p *Prompt) error {
	c := p.Conversation
	if visible(c) <= maxView {
		view, err := s.Recall.View(ctx, org, c)
		if err == nil {
			p.inForce, p.Messages = view[0], view[1:]
		}
		return err
	}
	w, err := s.Recall.Window(ctx, org, c.AgentID, c.ID)
	if err != nil {
		return err
	}
	p.inForce, p.Messages = w.Messages[0], w.Messages[1:]
	p.unread = recall.Window{Count: w.Count - len(w.Messages), Tokens: w.Tokens}
	for _, m := range p.Messages {
		p.unread.Tokens -= m.Tokens
	}
	return nil
}

// fixedShare is the part of a window that may be taken by what is sent with every turn. Past it the views of open files are shortened.
const fixedShare = 0.75

// attempts at making open files fit: each knows better how many characters a token of them is.
const fitAttempts = 5

// instruct compiles the system prompt, and shortens the views of open files where it would leave too little of a known window.
func (s *Store) instruct(ctx context.Context, org db.Org, own Agent, p *Prompt, count func(string) int) error {
	l, window := own.Limits(), p.Agent.Window()
	l.WindowTokens = window
	for range fitAttempts {
		compiled, err := s.compile(ctx, org, own, p.Conversation, l)
		if err != nil {
			return err
		}
		unchanged := l.OpenChars > 0 && compiled.openChars == p.system.openChars
		p.system = compiled
		p.Tokens.count(compiled, count)
		excess := p.Tokens.Tools + p.Tokens.instructions() - int(fixedShare*float64(window))
		if window == 0 || excess <= 0 || compiled.openChars == 0 || unchanged {
			return nil
		}
		perToken := float64(compiled.openChars) / float64(max(p.Tokens.Directories, 1))
		l.OpenChars = max(compiled.openChars-int(float64(excess)*max(perToken, 1))-1, 1)
	}
	return nil
}

// count counts the parts of a system prompt.
func (t *Tokens) count(p prompt, count func(string) int) {
	t.System, t.Blocks, t.Rules, t.Directories, t.Metadata = count(p.system), count(p.blocks), count(p.rules), count(p.directories), count(p.metadata)
}

// instructions are the tokens of the system prompt.
func (t *Tokens) instructions() int {
	return t.System + t.Blocks + t.Rules + t.Directories + t.Metadata
}

// asShown are the messages of a view as the model reads them: a summary with the place of what it stands for, and results of tools clipped
// where they are.
func asShown(c recall.Conversation, messages []recall.Message) ([]recall.Message, error) {
	v, err := compaction.ViewOf(c, messages, compaction.PromptOverhead{})
	return v.AsShown(), err
}

// converted are messages as a format has them, and what they take of a window.
func converted(f Format, messages []recall.Message, count func(string) int) ([]json.RawMessage, int) {
	if f == Anthropic {
		return chat.Anthropic(messages, count)
	}
	return chat.OpenAI(messages, count)
}

// toolsIn are definitions as a format has them.
func toolsIn(f Format, definitions []json.RawMessage) []json.RawMessage {
	all := make([]json.RawMessage, len(definitions))
	for i, raw := range definitions {
		if f == OpenAI {
			all[i] = chat.Encode(map[string]any{"type": "function", "function": raw})
			continue
		}
		var d struct {
			Name        string          `json:"name"`
			Description string          `json:"description"`
			Parameters  json.RawMessage `json:"parameters"`
		}
		if err := json.Unmarshal(raw, &d); err != nil {
			panic("agent: the definition of a tool is broken: " + err.Error()) // they are part of the program
		}
		all[i] = chat.Encode(struct {
			Name        string          `json:"name"`
			Description string          `json:"description"`
			InputSchema json.RawMessage `json:"input_schema"`
		}{d.Name, d.Description, d.Parameters})
	}
	return all
}
