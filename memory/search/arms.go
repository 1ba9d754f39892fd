package search

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/loci-memory/loci/archival"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed/lexicon"
	"github.com/loci-memory/loci/files"
	memoryfile "github.com/loci-memory/loci/memory/file"
	"github.com/loci-memory/loci/memory/working"
	"github.com/loci-memory/loci/recall"
)

// call returns the first of some tool calls for which the agent has the tool, or nil.
func (q Query) call(calls ...ReadOn) *ReadOn {
	for _, c := range calls {
		if q.Agent.HasTool(c.Tool) {
			return &c
		}
	}
	return nil
}

func expand(id string) ReadOn { return ReadOn{"expand", map[string]any{"id": id}} }

// workingMemory searches the working memories of an agent. If the agent is confined to a conversation, it searches only
// that one.
func (m Memories) workingMemory(ctx context.Context, q Query) (found, error) {
	list, err := m.Working.OfAgent(ctx, q.Org, q.Agent.ID, q.Users)
	var hits []MemoryFound
	for _, w := range list {
		if q.Confined && !w.Is(q.Conversation) {
			continue
		}
		for _, field := range working.Fields {
			for _, e := range w.Record.Entries(field) {
				h := MemoryFound{Kind: WorkingMemory, Layer: Active, Text: e.Text, At: &w.UpdatedAt,
					Place: FoundPlace{Conversation: w.ID, Field: string(field), Seq: e.Seq},
					Path:  "/v1/conversations/" + w.ID + "/working-memory"}
				if e.Seq > 0 {
					h.Call = q.call(expand(fmt.Sprintf("seq %d-%[1]d", e.Seq)))
				}
				hits = append(hits, h)
			}
		}
	}
	texts := make([]string, len(hits))
	for i, h := range hits {
		texts[i] = h.Text
	}
	q, spelling := q.respelled(texts)
	return found{hits: q.best(hits), searchedFor: spelling}, err
}

// blocks searches the core memory blocks. Hits have no tool call, because the blocks are in the prompt anyway.
func (m Memories) blocks(ctx context.Context, q Query) (found, error) {
	list, err := m.Blocks.OfAgent(ctx, q.Org, q.Agent.ID)
	texts := make([]string, len(list))
	for i, b := range list {
		texts[i] = b.Label + " " + b.Value
	}
	q, spelling := q.respelled(texts)
	var hits []MemoryFound
	for i, b := range list {
		h := MemoryFound{Kind: Block, Layer: Active, At: &b.UpdatedAt, Place: FoundPlace{ID: b.ID, Label: b.Label},
			Path: "/v1/agents/" + q.Agent.ID + "/core-memory/blocks/" + url.PathEscape(b.Label)}
		h.Text, h.Place.FirstLine, h.Place.LastLine = q.bestLines(b.Value)
		if lexicon.NewWanted(q.Text).Count(texts[i]) > 0 {
			hits = append(hits, h)
		}
	}
	return found{hits: q.best(hits), searchedFor: spelling}, err
}

// memoryFiles searches the tree of memory files by words, and if byMeaning is true also by meaning.
func (m Memories) memoryFiles(ctx context.Context, q Query, byMeaning bool) (found, error) {
	tree, err := m.MemoryFiles.OfAgent(ctx, q.Org, q.Agent.ID)
	if errors.Is(err, db.ErrNotFound) {
		return found{}, nil
	}
	if err != nil {
		return found{}, err
	}
	r, err := m.MemoryFiles.Search(ctx, q.Org, tree.ID,
		memoryfile.Query{Text: q.Text, Held: q.Held, Limit: q.Limit, WordsOnly: !byMeaning,
			MeaningOnly: q.Mode == recall.ByMeaning, Weight: q.Weight, AsWritten: q.AsWritten, Explain: q.Explain})
	if errors.Is(err, db.ErrInvalid) { // the query consists of signs only
		return found{}, nil
	}
	var hits []MemoryFound
	for _, f := range r.Hits {
		h := MemoryFound{Kind: MemoryFile, Layer: Topic, At: &f.UpdatedAt, Score: f.Score, Explanation: f.Explanation,
			Place:    FoundPlace{ID: f.ID, Path: f.Path, TreeID: tree.ID},
			Path:     "/v1/memory-trees/" + tree.ID + "/file?path=" + url.QueryEscape(f.Path),
			Validity: f.Validity, SupersededBy: f.SupersededBy, Ended: f.Ended}
		if tree.Rules.IsIndex(f.Path) {
			h.Layer = Index
		}
		h.Text, h.Place.FirstLine, h.Place.LastLine = q.bestLines(f.Text)
		if part, first, last, ok := f.Nearest(); ok && f.WordsRank == 0 {
			h.Text, h.Place.FirstLine, h.Place.LastLine = part, first, last
		}
		view := map[string]any{"command": "view", "path": f.Path}
		h.Call = q.call(ReadOn{"memory_files", view}, ReadOn{"memory", view})
		hits = append(hits, h)
	}
	return found{hits, len(hits) > 0 && r.ByMeaning, r.Note, r.Explanation, r.SearchedFor}, err
}

// stores searches the memories that can also rank by meaning.
type stores struct {
	Memories
	wordsOnly bool
}

func (s stores) passages(ctx context.Context, q Query) (found, error) {
	r, err := s.Archival.Search(ctx, q.Org, archival.Query{Text: q.Text, Limit: q.Limit,
		AgentID: q.Agent.ID, Users: q.Users, Filter: q.Filter, Zone: q.Agent.Zone(),
		Held: q.Held, WordsOnly: s.wordsOnly, MeaningOnly: q.Mode == recall.ByMeaning, Weight: q.Weight,
		AsWritten: q.AsWritten, Explain: q.Explain})
	var hits []MemoryFound
	for _, p := range r.Hits {
		hits = append(hits, MemoryFound{Kind: Passage, Layer: Store, Text: p.Text, At: &p.HappenedAt,
			Place: FoundPlace{ID: p.ID, ArchiveID: p.ArchiveID}, Validity: p.Validity, SupersededBy: p.SupersededBy,
			Ended: p.Ended, Score: p.Score, Explanation: p.Explanation,
			Call: q.call(ReadOn{"archival_memory_search", map[string]any{"query": db.Beginning(p.Text, 200)}}),
			Path: "/v1/archives/" + p.ArchiveID + "/passages/" + p.ID})
	}
	return found{hits, len(hits) > 0 && r.ByMeaning, r.Note, r.Explanation, r.SearchedFor}, err
}

func (s stores) files(ctx context.Context, q Query) (found, error) {
	reach := files.Reach{AgentID: q.Agent.ID, Users: q.Users}
	r, err := s.Files.Search(ctx, q.Org, reach, files.Query{Text: q.Text, Limit: q.Limit, WordsOnly: s.wordsOnly,
		Narrowing:   files.Narrowing{Filter: q.Filter, Zone: q.Agent.Zone()},
		MeaningOnly: q.Mode == recall.ByMeaning, Weight: q.Weight, AsWritten: q.AsWritten, Explain: q.Explain})
	var hits []MemoryFound
	for _, f := range r.Hits {
		text, first, last := q.bestLines(f.Text)
		first, last = f.FirstLine+first-1, min(f.FirstLine+last-1, f.LastLine)
		hits = append(hits, MemoryFound{Kind: File, Layer: Store, Text: text, Score: f.Score, Explanation: f.Explanation,
			Place: FoundPlace{ID: f.FileID, Path: f.FileName, FirstLine: first, LastLine: last},
			Call: q.call(ReadOn{"open_files", map[string]any{"file_requests": []any{
				map[string]any{"file_name": f.FileName, "line": first}}}}),
			Path: "/v1/folders/" + f.FolderID + "/files/" + f.FileID})
	}
	return found{hits, r.Ranking == files.ByWordsAndMeaning, r.Note, r.Explanation, r.SearchedFor}, err
}

func (s stores) messages(ctx context.Context, q Query) (found, error) {
	query := recall.Query{Text: q.Text, AgentID: q.Agent.ID, Users: q.Users, Asking: q.Conversation, Unseen: q.Unseen,
		Limit: q.Limit, Filter: q.Filter,
		Zone: q.Agent.Zone(), AsWritten: q.AsWritten,
		Explain: q.Explain, Mode: q.Mode, Weight: q.Weight}
	if q.Confined {
		query.Conversation = q.Conversation
	}
	if s.wordsOnly {
		query.Mode = recall.ByWords
	}
	r, err := s.Recall.Search(ctx, q.Org, query)
	var hits []MemoryFound
	for _, h := range r.Hits {
		place := FoundPlace{ID: h.ID, Seq: h.Seq, Role: string(h.Role)}
		if h.ConversationID != nil {
			place.Conversation = *h.ConversationID
		}
		hits = append(hits, MemoryFound{Kind: Message, Layer: Store, Place: place, Score: h.Score, Context: h.Context,
			Explanation: h.Explanation,
			Text:        cmp.Or(h.Snippet, recall.Searched(h.Message)), At: &h.CreatedAt,
			Call: q.call(ReadOn{"conversation_search", map[string]any{"around": h.ID}}, expand(h.ID)),
			Path: "/v1/messages/" + h.ID})
	}
	return found{hits, r.Ranked == recall.ByBoth, r.Note, r.Explanation, r.SearchedFor}, err
}
