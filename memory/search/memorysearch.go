// Package search searches all memories of an agent at once: working memory, core memory blocks, memory files,
// passages, files and messages, side by side, and ranks together what they find.
//
// Each file uses those that are named before it: rank.go ranks what is found, spelling.go changes the spelling of a
// query, arms.go searches each memory, and memorysearch.go all of them.
package search

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/archival"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed/rank"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/memory/block"
	memoryfile "github.com/loci-memory/loci/memory/file"
	"github.com/loci-memory/loci/memory/working"
	"github.com/loci-memory/loci/recall"
)

// Memories are the stores that are searched.
type Memories struct {
	Files       *files.Store
	Recall      *recall.Store
	Blocks      *block.Store
	Archival    *archival.Store
	Working     *working.Store
	MemoryFiles *memoryfile.Store
}

// Kind is the memory that a hit is of.
type Kind string

// The kinds, in the order in which hits of the same rank stand.
const (
	WorkingMemory Kind = "working_memory"
	Block         Kind = "block"
	MemoryFile    Kind = "memory_file"
	Passage       Kind = "passage"
	File          Kind = "file"
	Message       Kind = "message"
)

// Kinds are all kinds.
var Kinds = []Kind{WorkingMemory, Block, MemoryFile, Passage, File, Message}

// Layer is how far a hit is from the model: the nearer layers are searched by words first, and vectors are asked only
// where they do not know the place.
type Layer string

// The layers, the nearest first.
const (
	Active Layer = "active" // stands in each prompt: working memory and core memory blocks
	Index  Layer = "index"  // the index of memory files, which points to the topics
	Topic  Layer = "topic"  // memory files that are read when they are needed
	Store  Layer = "store"  // passages, files and messages, by words and by meaning
)

// Limits of a search.
const (
	DefaultLimit = 10
	MaxLimit     = 50
	maxTextBytes = 1_500 // of the text that a hit shows
)

// Query asks for what an agent's memories hold on a subject.
type Query struct {
	Org          db.Org
	Agent        agent.Agent
	Text         string
	Kinds        []Kind // empty is all
	Limit        int    // 1 to MaxLimit
	Conversation string // the one whose model asks: an id or DefaultConversation; empty if no model asks
	Confined     bool   // to that conversation, of messages and working memory
	AsWritten    bool   // no other spellings are searched
	Explain      bool   // hits and results say how they were ranked

	// Mode is what the memories rank by. By meaning, those without vectors are left out: working memory and blocks.
	Mode   recall.Mode
	Weight float64 // of meaning, as rank.Question has it

	Unseen bool    // leaves out the messages that the model sees anyway
	Held   db.Held // of passages and memory files, what does not hold is left out

	guessed bool // Text is another spelling of what was asked for
}

// MemoryFound is a hit of a search in all memories.
type MemoryFound struct {
	Kind  Kind    `json:"kind" enum:"working_memory,block,memory_file,passage,file,message" doc:"The memory."`
	Layer Layer   `json:"layer" enum:"active,index,topic,store" doc:"Active stands in each prompt."`
	Score float64 `json:"score" doc:"How well it fits, from 0 to 1; comparable among searches."`

	Place FoundPlace `json:"place" doc:"Where the text stands."`
	Text  string     `json:"text" doc:"The text, or its part that fits best."`
	At    *time.Time `json:"at" doc:"When it was said or stored; null where the memory keeps no time for it."`
	Call  *ReadOn    `json:"call" doc:"The agent's tool call that reads on; null if the agent has no tool for it."`
	Path  string     `json:"path" doc:"The path of the API that reads on."`

	db.Validity
	SupersededBy *string `json:"superseded_by" doc:"The passage or memory file that took its place."`
	Ended        bool    `json:"ended" doc:"It holds no longer."`

	Context     bool                 `json:"context" doc:"A message that shares nothing with the query."`
	Explanation *rank.HitExplanation `json:"explain,omitempty" doc:"How it was ranked, with explain=true."`
}

// FoundPlace is where a hit stands. Fields that its memory does not have are absent.
type FoundPlace struct {
	ID           string `json:"id,omitempty" doc:"Of the block, memory file, passage, file or message."`
	Path         string `json:"path,omitempty" doc:"Of the memory file, or of the file with its folder."`
	Label        string `json:"label,omitempty" doc:"Of the block."`
	Field        string `json:"field,omitempty" doc:"Of the working memory."`
	TreeID       string `json:"tree_id,omitempty" doc:"Of the memory file."`
	ArchiveID    string `json:"archive_id,omitempty" doc:"Of the passage."`
	Conversation string `json:"conversation_id,omitempty" doc:"Of the message or working memory."`
	Role         string `json:"role,omitempty" doc:"Of the message."`
	Seq          int64  `json:"seq,omitempty" doc:"Position of the message, or of the entry's evidence, in the log."`
	FirstLine    int    `json:"first_line,omitempty" doc:"From 1."`
	LastLine     int    `json:"last_line,omitempty" doc:"Inclusive."`
}

// ReadOn is a call of a tool.
type ReadOn struct {
	Tool      string         `json:"tool" doc:"Its name."`
	Arguments map[string]any `json:"arguments" doc:"Of the call."`
}

// Results are the hits of a search, the best first.
type Results struct {
	Hits    []MemoryFound
	Meaning bool   // memory files, passages, files or messages were ranked by meaning too
	Known   string // the place that a near layer named, so that no vectors were asked; empty if none did
	rank.Remarks

	SearchedFor  string                     // the spelling that was found, where no text has a word of the query
	Explanations map[Kind]*rank.Explanation // of memory files, passages, files and messages, if the query asks for them
}

// arm is the search of one memory.
type arm func(ctx context.Context, q Query) (found, error)

// found are the hits of an arm, the best first.
type found struct {
	hits    []MemoryFound
	meaning bool
	note    string

	explanation *rank.Explanation
	searchedFor string
}

// Search searches the memories side by side. No arm holds a connection while it waits for another.
// ErrInvalid if the query is blank or too long, or a kind unknown.
func (m Memories) Search(ctx context.Context, q Query) (Results, error) {
	if q.Text = strings.TrimSpace(db.Clean(q.Text)); q.Text == "" {
		return Results{}, db.Invalid("query has no words; say what to search for")
	}
	if err := rank.CheckQuery(q.Text); err != nil {
		return Results{}, err
	}
	for _, k := range q.Kinds {
		if !slices.Contains(Kinds, k) {
			return Results{}, db.Invalid("there is no kind %q; the kinds are %s", db.Short(string(k)), joinedKinds())
		}
	}
	q.Limit = min(max(q.Limit, 1), MaxLimit)
	filesBy := func(meaning bool) arm {
		return func(ctx context.Context, q Query) (found, error) { return m.memoryFiles(ctx, q, meaning) }
	}
	nearest := map[Kind]arm{}
	if q.Mode != recall.ByMeaning {
		nearest = map[Kind]arm{WorkingMemory: m.workingMemory, Block: m.blocks, MemoryFile: filesBy(false)}
	}
	near, err := m.side(ctx, q, nearest)
	if err != nil {
		return Results{}, err
	}
	out := Results{Known: q.known(near)}
	inStores := stores{Memories: m, wordsOnly: out.Known != "" || q.Mode == recall.ByWords}
	arms := map[Kind]arm{Passage: inStores.passages, File: inStores.files, Message: inStores.messages}
	if !inStores.wordsOnly && m.MemoryFiles.ByMeaning() {
		arms[MemoryFile] = filesBy(true)
	}
	all, err := m.side(ctx, q, arms)
	if err != nil {
		return Results{}, err
	}
	for i, kind := range Kinds {
		if arms[kind] == nil {
			all[i], arms[kind] = near[i], nearest[kind]
		}
	}
	if err := m.asWritten(ctx, q, arms, all); err != nil {
		return Results{}, err
	}
	for i, f := range all {
		if f.explanation != nil {
			if out.Explanations == nil {
				out.Explanations = map[Kind]*rank.Explanation{}
			}
			out.Explanations[Kinds[i]] = f.explanation
		}
	}
	for _, f := range all {
		out.SearchedFor = cmp.Or(out.SearchedFor, f.searchedFor)
		out.Meaning, out.Note = out.Meaning || f.meaning, cmp.Or(out.Note, f.note)
	}
	out.Hits = q.ranked(all)
	out.Wordless = len(out.Hits) == 0 && rank.IsWordless(q.Text) &&
		(q.Mode == recall.ByWords || !m.MemoryFiles.ByMeaning() || out.Note != "")
	return out, nil
}

func joinedKinds() string {
	names := make([]string, len(Kinds))
	for i, k := range Kinds {
		names[i] = string(k)
	}
	return strings.Join(names, ", ")
}

// side runs the arms of the wanted kinds at the same time.
func (m Memories) side(ctx context.Context, q Query, arms map[Kind]arm) ([]found, error) {
	all := make([]found, len(Kinds))
	var g errgroup.Group
	for i, kind := range Kinds {
		search, ok := arms[kind]
		if !ok || len(q.Kinds) > 0 && !slices.Contains(q.Kinds, kind) {
			continue
		}
		g.Go(func() (err error) {
			all[i], err = search(ctx, q)
			return err
		})
	}
	return all, g.Wait()
}
