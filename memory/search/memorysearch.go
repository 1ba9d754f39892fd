// Package search searches all memories of an agent at the same time and ranks their hits together: working memory, core
// memory blocks, memory files, passages, files and messages.
//
// Each file uses only the files named before it: rank.go ranks hits, spelling.go changes the spelling of a query,
// arms.go searches each memory, and memorysearch.go searches all of them.
package search

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/archival"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/filter"
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

// Kind is the memory from which a hit comes.
type Kind string

// The kinds. Hits with equal scores are in this order.
const (
	WorkingMemory Kind = "working_memory"
	Block         Kind = "block"
	MemoryFile    Kind = "memory_file"
	Passage       Kind = "passage"
	File          Kind = "file"
	Message       Kind = "message"
)

// Kinds lists all kinds.
var Kinds = []Kind{WorkingMemory, Block, MemoryFile, Passage, File, Message}

// Layer says how far a hit is from the model. The nearer layers are searched first, by words. Vectors are used only if
// the nearer layers do not know the place.
type Layer string

// The layers, nearest first.
const (
	Active Layer = "active" // in every prompt: working memory and core memory blocks
	Index  Layer = "index"  // the index of memory files, which points to the topics
	Topic  Layer = "topic"  // memory files that are read when they are needed
	Store  Layer = "store"  // passages, files and messages, by words and by meaning
)

// Limits of a search.
const (
	DefaultLimit = 10
	MaxLimit     = 50
	maxTextBytes = 1_500 // most bytes of a hit's text
)

// Query asks what an agent's memories hold about Text.
type Query struct {
	Org          db.Org
	Agent        agent.Agent
	Text         string
	Kinds        []Kind // empty: all
	Limit        int    // 1 to MaxLimit
	Conversation string // the conversation of the model that asks: an id or DefaultConversation; empty if no model asks
	Confined     bool   // search messages and working memory only in that conversation
	Users        db.UserScope
	AsWritten    bool // other spellings are not searched
	Explain      bool // hits and results say how they were ranked

	// Mode says whether to rank by words, by meaning or both. By meaning, working memory and blocks are left out, because
	// they have no vectors.
	Mode   recall.Mode
	Weight float64 // weight of meaning, see rank.Question

	// Filter narrows passages, files and messages by their fields; nil leaves all. The other memories, and those that lack
	// one of its fields, are not searched with it. Dates without an offset are in the agent's zone.
	Filter json.RawMessage

	Unseen bool    // leave out messages that the model sees anyway
	Held   db.Held // which passages and memory files hold; the others are left out

	guessed bool // Text is another spelling of the query
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

// FoundPlace says where a hit is. Fields that do not apply to its memory are absent.
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

// ReadOn is a tool call that reads more.
type ReadOn struct {
	Tool      string         `json:"tool" doc:"Its name."`
	Arguments map[string]any `json:"arguments" doc:"Of the call."`
}

// Results are the hits of a search, best first.
type Results struct {
	Hits    []MemoryFound
	Meaning bool   // memory files, passages, files or messages were ranked by meaning too
	Known   string // a near layer's place that has the answer, so that no vectors were used; else empty
	rank.Remarks

	SearchedFor  string                     // the spelling that was searched, if no text has a word of the query
	Explanations map[Kind]*rank.Explanation // for memory files, passages, files and messages, if Query.Explain
}

// arm searches one memory.
type arm func(ctx context.Context, q Query) (found, error)

// found is the result of an arm, with the best hit first.
type found struct {
	hits    []MemoryFound
	meaning bool
	note    string

	explanation *rank.Explanation
	searchedFor string
}

// Search searches the memories at the same time. No arm holds a connection while it waits for another. ErrInvalid if
// the query is blank or too long, or a kind is unknown.
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
	if err := q.narrow(); err != nil {
		return Results{}, err
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
	results := Results{Known: q.known(near)}
	inStores := stores{Memories: m, wordsOnly: results.Known != "" || q.Mode == recall.ByWords}
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
			if results.Explanations == nil {
				results.Explanations = map[Kind]*rank.Explanation{}
			}
			results.Explanations[Kinds[i]] = f.explanation
		}
	}
	for _, f := range all {
		results.SearchedFor = cmp.Or(results.SearchedFor, f.searchedFor)
		results.Meaning, results.Note = results.Meaning || f.meaning, cmp.Or(results.Note, f.note)
	}
	results.Hits = q.ranked(all)
	results.Wordless = len(results.Hits) == 0 && rank.IsWordless(q.Text) &&
		(q.Mode == recall.ByWords || !m.MemoryFiles.ByMeaning() || results.Note != "")
	return results, nil
}

// fields are those by which filters narrow a memory. Other memories have none.
var fields = map[Kind]filter.Fields{Passage: archival.Fields, File: files.Fields, Message: recall.Fields}

// narrow limits a query with a filter to the kinds that have all fields of the filter. ErrInvalid if the filter is not
// valid, or no wanted kind has them.
func (q *Query) narrow() error {
	all := filter.Fields{}
	for _, of := range fields {
		maps.Copy(all, of)
	}
	f, err := filter.Parse(q.Filter, all, q.Agent.Zone())
	if err != nil || f.Empty() {
		return err
	}
	asked := slices.Sorted(maps.Keys(f.Asks()))
	var kinds []Kind
	for _, kind := range Kinds {
		lacks := func(name string) bool { return fields[kind][name].SQL == "" }
		if !slices.ContainsFunc(asked, lacks) && (len(q.Kinds) == 0 || slices.Contains(q.Kinds, kind)) {
			kinds = append(kinds, kind)
		}
	}
	if q.Kinds = kinds; len(kinds) == 0 {
		return &db.FieldError{Field: "filter", Rule: "no memory that is searched has all of its fields: " +
			strings.Join(asked, ", ")}
	}
	return nil
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
