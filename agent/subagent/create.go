package subagent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/agent/loop"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/memory/working"
	"github.com/loci-memory/loci/recall"
)

// New says how to make a sub-agent.
type New struct {
	ParentID     string
	Conversation string // of the parent: an id, or recall.DefaultConversation
	Mode         string
	Task         string
	Name         string   // empty makes a name from the definition's or the parent's
	Definition   string   // name of a definition of the parent, which says the mode and what it is given
	OTID         *string  // the caller's own id of the request
	CallID       *string  // the parent's open call that the result answers; if nil, the result comes as a message
	Runs         bool     // the server runs the sub-agent and brings its result
	Awaited      bool     // a run waits for the result
	OnlyTools    []string // nil means all tools of the parent
	WindowLimit  *int     // nil means the parent's limit

	depth int // of the new sub-agent, from 1

	Grants // for agents that are made, not for forks
}

// Grants say what a new sub-agent gets from its parent, and what it gets of its own.
type Grants struct {
	Default    bool     // also grant the parent's blocks and memory files AGENTS, TOOLS and SOUL, read-only
	Blocks     []Grant  // of the parent
	Folders    []string // ids or names of folders of the parent
	Files      []string // names of the parent's files that are open at the start; their folders are granted, too
	Tree       *Grant   // the parent's memory files
	Skills     []string // names of the parent's that begin the sub-agent's conversation; their folders are granted, too
	Model      *string
	System     *string
	Compaction json.RawMessage
}

// Grant gives a sub-agent something that belongs to its parent.
type Grant struct {
	ID       string
	ReadOnly bool
}

// lockChildren is the first key of an advisory lock. An agent's sub-agents are made one at a time under this lock.
const (
	lockChildren = 0x6368696c
	lockKeys     = 1 << 31 // agents share a lock if their keys differ by a multiple of it
)

// maxSteps bounds the number of answers in a run that the server makes of a sub-agent.
const maxSteps = 50

// maxTaskChars bounds a task, in characters.
const maxTaskChars = 100_000

// Create makes a sub-agent, and starts its run if the server is to run it. If the run cannot start, no sub-agent is
// made. If the parent already has a sub-agent with the request's otid, Create returns that one. ErrInvalid for
// something that the mode does not allow or that the parent does not have, and beyond MaxDepth. ErrNotFound if the
// parent, its conversation or its call does not exist. ErrTooMany beyond MaxWorking, or if the organization has too
// many runs. loop.ErrNoModel if the server is to run the sub-agent and has no model.
func (s *Store) Create(ctx context.Context, org db.Org, n New) (Child, error) {
	parent, err := s.Agents.Agent(ctx, org, n.ParentID)
	if err != nil {
		return Child{}, err
	}
	if n, err = s.defined(ctx, org, parent, n); err != nil {
		return Child{}, err
	}
	if err := n.check(); err != nil {
		return Child{}, err
	}
	var c Child
	var run loop.Prepared
	err = db.Tx(ctx, s.DB, func(tx pgx.Tx) error {
		run.Drop() // drop the run of an attempt that is being repeated
		inTx := s.with(tx)
		id, err := inTx.create(ctx, org, parent, n)
		if err != nil {
			return err
		}
		if c, err = inTx.Child(ctx, org, n.ParentID, id); err == nil {
			run, err = inTx.prepare(ctx, tx, org, c)
		}
		return err
	})
	if err != nil {
		run.Drop()
		return Child{}, err
	}
	return c, run.Begin(ctx)
}

func (n New) check() error {
	switch {
	case !slices.Contains([]string{Blank, Brief, Fork}, n.Mode):
		return db.Invalid("mode is %q; it must be blank, brief or fork", db.Short(n.Mode))
	case strings.TrimSpace(n.Task) == "":
		return db.Invalid("the task is empty; it is what the sub-agent is told to do")
	case utf8.RuneCountInString(n.Task) > maxTaskChars:
		return db.Invalid("the task has more than %d characters", maxTaskChars)
	case n.Mode == Fork && n.grants():
		return db.Invalid("a fork has what its parent has: blocks, default_grants, folders, skills, memory_tree, model, " +
			"system and compaction_settings are for the modes blank and brief")
	case n.Mode != Brief && len(n.Files) > 0:
		return db.Invalid("files are for the mode brief")
	}
	return nil
}

func (n New) grants() bool {
	return n.Default || n.Blocks != nil || n.Folders != nil || n.Skills != nil || n.Tree != nil || n.Model != nil ||
		n.System != nil || n.Compaction != nil
}

// create makes a sub-agent in the transaction of s, and returns its id.
func (s *Store) create(ctx context.Context, org db.Org, parent agent.Agent, n New) (id string, err error) {
	for _, text := range []*string{&n.Task, &n.Name} {
		if *text, err = s.Agents.Recall.RedactText(ctx, org, *text); err != nil {
			return "", err
		}
	}
	c, err := s.Agents.Recall.Conversation(ctx, org, parent.ID, n.Conversation)
	if err != nil {
		return "", err
	}
	if err := s.lockLiving(ctx, org, c); err != nil {
		return "", err
	}
	if _, err := s.DB.Exec(ctx, `SELECT pg_advisory_xact_lock($1, $2)`, lockChildren, parent.Key%lockKeys); err != nil {
		return "", db.Error(err)
	}
	if id, err := s.repeated(ctx, org, parent, n); id != "" || err != nil {
		return id, err
	}
	depth, err := s.depthOf(ctx, org, c.Key)
	if err != nil {
		return "", err
	}
	if depth++; depth > MaxDepth {
		return "", db.Invalid("the sub-agent would be %d deep; sub-agents of sub-agents may be %d deep", depth, MaxDepth)
	}
	if err := s.checkCount(ctx, org, parent.Key); err != nil {
		return "", err
	}
	var position *int
	if n.CallID != nil {
		callPosition, err := s.Agents.Recall.OpenCall(ctx, org, c, *n.CallID)
		if err != nil {
			return "", err
		}
		position = &callPosition
		if err := s.checkCall(ctx, org, c, *n.CallID, callPosition); err != nil {
			return "", err
		}
	}
	n.depth = depth
	child, err := s.make(ctx, org, parent, c, n)
	if err != nil {
		return "", err
	}
	return db.One[string](ctx, s.DB, `
		INSERT INTO children (org, parent_key, parent_conversation, agent_key, conversation_key, mode, name, task, depth,
		                      otid, call_id, call_position, runs, awaited, after_position)
		VALUES (@org, @parent, @parent_conversation, @agent, @conversation, @mode, @name, @task, @depth, @otid, @call,
		        @position, @runs, @awaited, @after)
		RETURNING id`,
		pgx.StrictNamedArgs{"org": org, "parent": parent.Key, "parent_conversation": c.Key, "agent": child.AgentKey,
			"conversation": child.Key, "mode": n.Mode, "name": n.nameFor(parent), "task": db.Clean(n.Task), "depth": depth,
			"otid": n.OTID, "call": n.CallID, "position": position, "runs": n.Runs, "awaited": n.Awaited,
			"after": child.Messages})
}

// lockLiving locks the parent's conversation until the transaction ends, so that nobody deletes it meanwhile.
func (s *Store) lockLiving(ctx context.Context, org db.Org, c recall.Conversation) error {
	err := db.Exec(ctx, s.DB, `
		SELECT FROM conversations WHERE org = $1 AND key = $2 AND deleted_at IS NULL FOR NO KEY UPDATE`, org, c.Key)
	return db.OrNotFound(err, "Conversation with ID %s not found", c.ID)
}

// checkCall returns an ErrConflict if another sub-agent already works on the answer to a call.
func (s *Store) checkCall(ctx context.Context, org db.Org, c recall.Conversation, callID string, position int) error {
	id, err := db.One[string](ctx, s.DB, `
		SELECT id FROM children
		WHERE org = $1 AND parent_conversation = $2 AND call_id = $3 AND call_position = $4 AND status = 'working'
		LIMIT 1`, org, c.Key, callID, position)
	if err == nil {
		return db.Conflict("the sub-agent %s works on the answer of the call %s: cancel it, or leave tool_call_id out", id,
			db.Short(callID))
	}
	if isNotFound(err) {
		return nil
	}
	return err
}

// repeated returns the id of the sub-agent with the request's otid; empty if there is none. ErrConflict if that
// sub-agent has another task or mode.
func (s *Store) repeated(ctx context.Context, org db.Org, parent agent.Agent, n New) (string, error) {
	if n.OTID == nil {
		return "", nil
	}
	earlier, err := db.One[Child](ctx, s.DB, rows+` AND p.id = @parent AND k.otid = @otid`,
		pgx.StrictNamedArgs{"org": org, "parent": parent.ID, "otid": *n.OTID})
	if isNotFound(err) {
		return "", nil
	}
	if err == nil && (earlier.Task != db.Clean(n.Task) || earlier.Mode != n.Mode) {
		err = db.Conflict("the agent has a sub-agent of the otid %s, with another task or mode", db.Short(*n.OTID))
	}
	return earlier.ID, err
}

func (n New) nameFor(parent agent.Agent) string {
	const most = 180
	name := []rune(cmp.Or(n.Name, parent.Name+", sub-agent"))
	return string(name[:min(len(name), most)])
}

// make makes the conversation of a sub-agent and appends the task. It returns the conversation as it was before the
// task.
func (s *Store) make(ctx context.Context, org db.Org, parent agent.Agent, c recall.Conversation, n New) (
	recall.Conversation, error) {
	has, err := s.toolsOf(ctx, org, parent, n.OnlyTools)
	if err != nil {
		return recall.Conversation{}, err
	}
	if n.Mode == Fork {
		return s.fork(ctx, org, c, n)
	}
	child, err := s.newAgent(ctx, org, parent, n, has)
	if err != nil {
		return child, err
	}
	task := n.Task
	if n.Mode == Brief {
		m, err := s.Agents.Working.Memory(ctx, org, c)
		if err != nil {
			return child, err
		}
		if text := working.Render(m.Unplaced()); text != "" {
			task += "\n\nThe state of the work that this task belongs to:\n" + text
		}
	}
	return child, s.tell(ctx, org, child, task)
}

// tell appends a task to the conversation of a sub-agent.
func (s *Store) tell(ctx context.Context, org db.Org, c recall.Conversation, task string) error {
	_, err := s.Agents.Recall.Append(ctx, org, c.AgentID, c.ID, []recall.Draft{
		{Role: recall.User, Content: []recall.Part{{Type: recall.Text, Text: task}}}})
	return err
}

// forkWords tell the model of a fork its task. elsewhere is the fork's result for calls that the parent's model still
// waits for.
const (
	forkWords = "You are now a sub-agent: this conversation is a copy, and the original does not see what you do here. " +
		"Do only the task that follows. End with one message that is its result, which is all that is handed back.\n\n" +
		"The task: "
	elsewhere = "This call is answered in the conversation of which this one is a copy, not here."
)

// fork makes a copy of the parent's conversation for a sub-agent.
func (s *Store) fork(ctx context.Context, org db.Org, c recall.Conversation, n New) (child recall.Conversation,
	err error) {
	child, open, err := s.Agents.Delegate(ctx, org, c, agent.Delegation{OnlyTools: n.OnlyTools, Depth: n.depth})
	if err != nil {
		return child, err
	}
	if n.WindowLimit != nil {
		child, err = s.Agents.Recall.UpdateConversation(ctx, org, child.ID,
			recall.ConversationUpdate{WindowLimit: n.WindowLimit})
		if err != nil {
			return child, err
		}
	}
	for _, call := range open {
		place := recall.CallPlace{AgentID: child.AgentID, Conversation: child.ID, ID: call.CallID, Position: call.Position}
		if _, err := s.Agents.Recall.AnswerCall(ctx, org, place, answer(call.CallID, elsewhere, false)); err != nil {
			return child, err
		}
	}
	return child, s.tell(ctx, org, child, forkWords+n.Task)
}

// answer returns a function for recall.Store.AnswerCall that drafts the result of a call.
func answer(callID, text string, failed bool) func(pgx.Tx) (recall.Draft, error) {
	return func(pgx.Tx) (recall.Draft, error) {
		return recall.Draft{Role: recall.Tool, Content: []recall.Part{{Type: recall.ToolReturn, CallID: callID, Text: text,
			IsError: failed}}}, nil
	}
}

// prepare stores the run of a sub-agent, unless the server does not run the sub-agent or the run already exists.
func (s *Store) prepare(ctx context.Context, tx pgx.Tx, org db.Org, c Child) (loop.Prepared, error) {
	if !c.Runs || c.Status != Working {
		return loop.Prepared{}, nil
	}
	started, err := s.Loop.In(tx).HasRun(ctx, org, c.ConversationID)
	if err != nil || started {
		return loop.Prepared{}, err
	}
	return s.Loop.Prepare(ctx, tx, org, loop.Request{AgentID: c.AgentID, Conversation: c.ConversationName,
		Background: true, Options: loop.Options{MaxSteps: maxSteps}})
}

func isNotFound(err error) bool { return errors.Is(err, db.ErrNotFound) }
