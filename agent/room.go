package agent

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/memory/block"
	"github.com/loci-memory/loci/recall"
)

// fixedShare is the share of a window for everything but messages. Above it, the views of open files are shortened, and
// after them the texts of core memory.
const fixedShare = 0.75

// maxCompilations bounds the attempts to shorten the views of open files. Each attempt has a better estimate of their
// characters per token.
const maxCompilations = 5

// compileFitting compiles what the prompt has besides its messages. If that takes too much of a known window, the views
// of open files are shortened, then the texts of core memory.
func (s *Store) compileFitting(ctx context.Context, org db.Org, base Agent, target PromptTarget, p *Prompt) error {
	l, window := base.Limits(), p.Agent.Window()
	l.WindowTokens = window
	first := compilation{base: base, target: target, limits: &l}
	err := s.compileWithin(ctx, org, first, p)
	if err != nil || window == 0 || p.excess(window) <= 0 || p.system.openChars == 0 {
		return err
	}
	l.NoStubs = true
	return s.compileWithin(ctx, org, first, p)
}

// compilation says how a prompt is compiled. limits are lowered until it fits.
type compilation struct {
	base   Agent
	target PromptTarget
	limits *files.Limits
}

// compileWithin compiles what the prompt has besides its messages, and lowers the limit of what open files show.
func (s *Store) compileWithin(ctx context.Context, org db.Org, c compilation, p *Prompt) error {
	window, l, target, base := p.Agent.Window(), c.limits, c.target, c.base
	for range maxCompilations {
		compiled, err := s.compile(ctx, org, base, p.Conversation, promptMeans{limits: *l, tools: p.definitions,
			hasFolder: p.hasFolder, withoutFiles: target.WithoutFiles, bounds: p.policy.Bootstrap(), window: p.window(),
			count: p.count})
		if err != nil {
			return err
		}
		unchanged := l.OpenChars > 0 && compiled.openChars == p.system.openChars
		p.system = compiled
		if p.system.asLetta = target.LettasLayout; target.Trial.WithoutMemory {
			p.system.blocks, p.system.working = "", ""
		}
		if p.Conversation.Delegated && target.System == nil && target.Addition == "" { // it begins like its parent's
			p.system.system, p.system.blocks, p.system.rules, p.system.skills, p.system.about = p.logged.Text(), "", "",
				"", ""
		}
		p.countSystem()
		excess := p.excess(window)
		if window == 0 || excess <= 0 {
			break
		}
		if compiled.openChars == 0 || unchanged {
			break
		}
		perToken := float64(compiled.openChars) / float64(max(p.factor.Of(p.counted.Directories), 1))
		l.OpenChars = max(compiled.openChars-int(float64(excess)*max(perToken, 1))-1, 1)
	}
	p.shortenCore()
	return nil
}

// excess returns the tokens by which everything but messages exceeds its share of a window.
func (p *Prompt) excess(window int) int {
	return p.factor.Of(p.counted.Tools+p.counted.instructions()) - int(fixedShare*float64(window))
}

// coreSteps are the numbers of characters to which the texts of core memory are shortened. There are few, so that a
// small change elsewhere leaves the prompt as it is, and a provider's cache with it.
var coreSteps = []int{100_000, 50_000, 25_000, 20_000, 15_000, 10_000, 7_500, 5_000, 3_500, 2_500, 2_000, 1_500, 1_000,
	700, 500, 350, 200, 100, 50, 1}

// shortenCore shortens the texts of core memory until everything but messages fits its share of the window.
func (p *Prompt) shortenCore() {
	window := p.window()
	if p.excess(window) <= 0 || p.system.blocks+p.system.working == "" {
		return
	}
	hasBlocks, longest := p.system.blocks != "", p.system.core.longest()
	steps := slices.DeleteFunc(slices.Clone(coreSteps), func(n int) bool { return n >= longest && n > 1 })
	shorten := func(step int) {
		blocks, work := p.system.core.render(steps[step])
		if p.system.working = work; hasBlocks {
			p.system.blocks = blocks
		}
		p.countSystem()
	}
	step := sort.Search(len(steps), func(i int) bool {
		shorten(i)
		return p.excess(window) <= 0
	})
	shorten(min(step, len(steps)-1))
}

// NextShown maps the id of an open file → the offset of the first open line that the conversation's prompts leave out.
// It has only files that are shown in part.
func (s *Store) NextShown(ctx context.Context, org db.Org, agentID, conversation string) (map[string]int, error) {
	target := PromptTarget{AgentID: agentID, Conversation: conversation}
	p, base, err := s.prepare(ctx, org, target)
	if err != nil {
		return nil, err
	}
	err = s.compileFitting(ctx, org, base, target, &p)
	return files.NextShown(p.system.files), err
}

// Room says what the prompts of a conversation hold besides messages, in tokens.
type Room struct {
	Window int
	Limit  int // of everything but messages
	Others int // tools, instructions and rules, and the least of files
	Core   int // blocks, the index of memory files, and working memory

	core     coreMemory
	count    func(string) int // the tokens of a text
	settings plan.Settings
}

// Room returns what the prompts of an agent's conversation hold besides messages. An empty conversation is the default
// one; a delegated one stands for it, because its prompts begin like its parent's.
func (s *Store) Room(ctx context.Context, org db.Org, agentID, conversation string) (Room, error) {
	p, base, err := s.prepare(ctx, org, PromptTarget{AgentID: agentID, Conversation: conversation})
	if err != nil {
		return Room{}, err
	}
	if p.Conversation.Delegated {
		return s.Room(ctx, org, agentID, recall.DefaultConversation)
	}
	l := base.Limits()
	l.WindowTokens, l.OpenChars = p.Agent.Window(), 1
	p.system, err = s.compile(ctx, org, base, p.Conversation, promptMeans{limits: l, tools: p.definitions,
		hasFolder: p.hasFolder, bounds: p.policy.Bootstrap(), window: p.window(), count: p.count})
	if err != nil {
		return Room{}, err
	}
	p.countSystem()
	of := p.factor.Of
	core := of(p.counted.Blocks + p.counted.Working)
	return Room{Window: p.window(), Limit: int(fixedShare * float64(p.window())), Core: core,
		Others: of(p.counted.Tools+p.counted.instructions()) - core, core: p.system.core,
		count: func(text string) int { return of(p.count(text)) }, settings: p.settings}, nil
}

// A window that an operator chooses must have room for a message of leastMessage tokens. The smallest window that an
// error names is a multiple of windowStep.
const (
	leastMessage = 64
	windowStep   = 128
)

// mustHoldPrompt returns an ErrInvalid, with the smallest possible window, if no prompt of an agent fits its window.
func (s *Store) mustHoldPrompt(ctx context.Context, org db.Org, agentID string) error {
	r, err := s.Room(ctx, org, agentID, recall.DefaultConversation)
	if err != nil {
		return err
	}
	blocks, work := r.core.render(1)
	least := r.Others + r.count(blocks) + r.count(work) + leastMessage
	if least <= r.settings.Most(r.Window) {
		return nil
	}
	steps := 1 + sort.Search(least, func(i int) bool { return least <= r.settings.Most((i+1)*windowStep) })
	return db.Invalid("context_window_limit is %d, and no prompt of this agent fits it: its tools and instructions take "+
		"%d tokens. The smallest that it can have is %d. With fewer tools (tool_set, tools) or shorter instructions "+
		"(system) it can be smaller.", r.Window, r.Others, steps*windowStep)
}

// WindowIn returns the context window of the model that answers in a conversation, in tokens; 0 if it is unknown.
func (s *Store) WindowIn(ctx context.Context, org db.Org, c recall.Conversation) (int, error) {
	a, err := s.Agent(ctx, org, c.AgentID)
	return a.in(c).Window(), err
}

// Check returns an ErrInvalid if a change of core memory, after which it has this room, leaves no room for messages, or
// makes a block too long for the window. A change that makes core memory smaller is good. before is the room before the
// change.
func (r Room) Check(before Room) error {
	for _, b := range r.core.blocks {
		n, limit := utf8.RuneCountInString(b.Value), r.core.agent.BlockChars(b.Limit)
		if n > limit && n > before.charsOf(b) {
			return db.TooLong("Edit failed: Exceeds %d character limit (requested %d) of block %s, which is a fifth of "+
				"your window of %d tokens. Nothing was changed. Write less there, or remove what is settled first.", limit, n,
				b.Label, r.Window)
		}
	}
	if r.Others+r.Core <= r.Limit || r.Core <= before.Core {
		return nil
	}
	return db.Invalid("Nothing was changed, because no room would be left for messages: what you always see besides "+
		"tools and instructions may take %d tokens of your window of %d; it takes %d now, and would take %d. Shorten "+
		"or remove the largest first: %s.", max(r.Limit-r.Others, 0), r.Window, before.Core, r.Core, r.largest())
}

// charsOf returns the characters that a block had; 0 if it was not there.
func (r Room) charsOf(b block.Block) int {
	for _, other := range r.core.blocks {
		if other.Key == b.Key {
			return utf8.RuneCountInString(other.Value)
		}
	}
	return 0
}

// largest names the largest parts of core memory, at most three, with their sizes.
func (r Room) largest() string {
	type part struct {
		name   string
		tokens int
	}
	var parts []part
	add := func(name, text string) {
		if text != "" {
			parts = append(parts, part{fmt.Sprintf("%s (%d characters", name, utf8.RuneCountInString(text)), r.count(text)})
		}
	}
	for _, b := range r.core.blocks {
		add("the block "+b.Label, b.Value)
	}
	add("the working memory", r.core.working)
	if r.core.index != nil {
		add("the index "+r.core.index.Path, beginning(r.core.index.Content, r.core.agent.indexChars()))
	}
	slices.SortStableFunc(parts, func(a, b part) int { return cmp.Compare(b.tokens, a.tokens) })
	var names []string
	for _, p := range parts[:min(len(parts), 3)] {
		names = append(names, fmt.Sprintf("%s, %d tokens)", p.name, p.tokens))
	}
	return strings.Join(names, ", ")
}
