package letta

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/loci-memory/loci/archival"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed/rank"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/server/rest"
)

// ArchivalPassage is a passage of an archive in Letta's shape.
type ArchivalPassage struct {
	archival.Passage
	Embedding       []float32 `json:"embedding" doc:"Its vector, see include_embeddings; null while it has none."`
	EmbeddingConfig rest.Null `json:"embedding_config"`
	SourceID        rest.Null `json:"source_id"`
	FileID          rest.Null `json:"file_id"`
	FileName        rest.Null `json:"file_name"`
	IsDeleted       bool      `json:"is_deleted"`
	CreatedByID     rest.Null `json:"created_by_id"`
	LastUpdatedByID rest.Null `json:"last_updated_by_id"`
	Duplicate       bool      `json:"duplicate,omitempty" doc:"The archive has had this passage."`

	Similar []archival.Similar `json:"similar,omitempty" doc:"Of a new one: those of its archive that say nearly the same."` //nolint:lll // a tag is one line
}

// PassageOf returns a passage in Letta's shape.
func PassageOf(p archival.Passage) ArchivalPassage { return ArchivalPassage{Passage: p} }

// WithEmbeddings are the parameters of operations that show passages.
type WithEmbeddings struct {
	Client
	Embeddings rest.Opt[bool] `query:"include_embeddings" doc:"Vectors, where there are; absent: for Letta's clients."`
}

// Shows reports whether the client wants vectors.
func (w WithEmbeddings) Shows() bool {
	return w.Embeddings.Value || !w.Embeddings.Set && w.isLettas()
}

// InsertedOf returns an inserted passage in Letta's shape.
func InsertedOf(p archival.Inserted) ArchivalPassage {
	return ArchivalPassage{Passage: p.Passage, Duplicate: p.Duplicate}
}

// Bounds on the warnings about an insertion: how many passages they name, and how many tags of each.
const (
	MaxLeft     = 5
	maxLeftTags = 10
)

// LeftWarnings tells which passages of a request were not stored because the archive has the same texts already, and
// how to add what they lack (see archival.Inserted.Left). It names at most MaxLeft passages of list; unnamed counts
// further ones that are not in list. path is the path for changing a passage, up to its id.
func LeftWarnings(list []archival.Inserted, unnamed int, path string) (warnings []string) {
	for _, p := range list {
		switch {
		case !p.Left():
		case len(warnings) == MaxLeft:
			unnamed++
		default:
			warnings = append(warnings, leftWarning(p, path))
		}
	}
	if unnamed > 0 {
		warnings = append(warnings, fmt.Sprintf("%d more texts were stored before and were not changed: their tags, or "+
			"other fields, differ from those of this request", unnamed))
	}
	return warnings
}

func leftWarning(p archival.Inserted, path string) string {
	sentence := p.ID + " has this text already, and was not changed:"
	if n := len(p.LeftTags); n > 0 {
		var tags []string
		for _, tag := range p.LeftTags[:min(n, maxLeftTags)] {
			tags = append(tags, strconv.Quote(db.Short(tag)))
		}
		if n > maxLeftTags {
			tags = append(tags, fmt.Sprintf("and %d more", n-maxLeftTags))
		}
		sentence += " the tags " + strings.Join(tags, ", ") + " were not added;"
	}
	changes := " changes it"
	if len(p.LeftFields) > 0 {
		sentence += " its " + strings.Join(p.LeftFields, ", ") + " stayed;"
		if slices.Contains(p.LeftFields, "created_at") {
			changes += " but for created_at"
		}
	}
	return sentence + " PATCH " + path + p.ID + changes + ", and tags take the place of all others"
}

// NewPassage is a passage to create.
type NewPassage struct {
	Text      string                `json:"text"`
	Tags      rest.Opt[[]string]    `json:"tags,omitzero"`
	Metadata  rest.Opt[rest.Object] `json:"metadata,omitzero"`
	CreatedAt rest.Opt[string]      `json:"created_at,omitzero" doc:"When it was so; else in the agents' timezone."`
	Language  rest.Opt[string]      `json:"language,omitzero" doc:"In ISO 639-1; else that of its words."`

	NewValidity
	Supersedes rest.Opt[string] `json:"supersedes,omitzero" doc:"The passage of the archive that ends where this begins."`
}

// NewAgentPassage is a passage to create in an agent's archive.
type NewAgentPassage struct {
	NewPassage
	UserID rest.Opt[string] `json:"user_id,omitzero" doc:"Whose it is: an identity, made if new; else nobody's."`
}

// Draft returns the passage to insert. Times without an offset are in zone. ErrInvalid if a time cannot be read.
func (p NewPassage) Draft(zone *time.Location) (archival.Draft, error) {
	d := archival.Draft{Text: p.Text, Tags: p.Tags.Value, Metadata: json.RawMessage(p.Metadata.Value),
		Supersedes: p.Supersedes.Value, Language: p.Language.Value}
	var err error
	if d.Validity, err = p.Validity(zone); err != nil {
		return d, err
	}
	if p.CreatedAt.Value == "" {
		return d, nil
	}
	created, err := recall.ParseStart(p.CreatedAt.Value, zone)
	if err != nil {
		return d, db.Invalid("created_at: '%s' is not a time in ISO 8601, such as 2024-05-01T12:00:00Z", p.CreatedAt.Value)
	}
	d.HappenedAt = created
	return d, nil
}

// UpdatePassage changes the fields that are present and not null.
type UpdatePassage struct {
	Text     rest.Opt[string]      `json:"text,omitzero"`
	Tags     rest.Opt[[]string]    `json:"tags,omitzero"`
	Metadata rest.Opt[rest.Object] `json:"metadata,omitzero"`
	Language rest.Opt[string]      `json:"language,omitzero" doc:"In ISO 639-1, by which words are found; empty: find it."`

	NewValidity
	SupersededBy rest.Opt[string] `json:"superseded_by,omitzero" doc:"The passage of the archive that took its place."`
}

// Update returns the change to make. Times without an offset are in zone. ErrInvalid if a time cannot be read.
func (p UpdatePassage) Update(zone *time.Location) (archival.PassageUpdate, error) {
	u := archival.PassageUpdate{Text: p.Text.Pointer(), Tags: p.Tags.Value, Metadata: json.RawMessage(p.Metadata.Value),
		Language: p.Language.Pointer()}
	if p.SupersededBy.Set {
		u.SupersededBy = &p.SupersededBy.Value
	}
	var err error
	u.ValidFrom, u.ValidUntil, err = p.Bounds(zone)
	return u, err
}

// PassageSearch holds the query and the filters of a search in an agent's passages.
type PassageSearch struct {
	Query  string   `query:"query" doc:"Nothing is found for one that is blank."`
	Tags   []string `query:"tags,explode" doc:"An empty tag finds nothing: no passage has one."`
	Match  string   `query:"tag_match_mode" enum:"any,all"`
	TopK   int      `query:"top_k" minimum:"0" doc:"5 if absent or 0; one above 100 is lowered to 100."`
	Offset int      `query:"offset" minimum:"0" maximum:"10000" doc:"Results to leave out."`
	After  string   `query:"after" doc:"The id of a passage: the results behind it."`
	Start  string   `query:"start_datetime" doc:"ISO 8601; in the agent's timezone if it has none."`
	End    string   `query:"end_datetime" doc:"A date is the whole of that day."`
	HeldAt
	Narrowed
	Ordered
	SearchMode
	Explained
}

// Resolve implements huma.Resolver. An empty tag is a filter too, but huma takes it for an absent one.
func (p *PassageSearch) Resolve(ctx rest.Context) []error {
	u := ctx.URL()
	p.Tags = u.Query()["tags"]
	return nil
}

// FoundPassages are the results of a search of an agent's passages.
type FoundPassages struct {
	Count   int            `json:"count"`
	Results []FoundPassage `json:"results"`

	SearchedFor string `json:"searched_for,omitempty"`
}

// FoundPassage is a passage that a search found.
type FoundPassage struct {
	ID        string    `json:"id"`
	Content   string    `json:"content"`
	Timestamp string    `json:"timestamp"`
	Tags      []string  `json:"tags"`
	Relevance Relevance `json:"relevance"`

	db.Validity
	SupersededBy *string `json:"superseded_by" doc:"The passage that took its place."`
	Ended        bool    `json:"ended" doc:"It holds no longer."`

	Explanation *rank.HitExplanation `json:"explain,omitempty" doc:"How it was ranked, with explain=true."`
}

// Relevance holds the score and the ranks of a result.
type Relevance struct {
	Score       float64 `json:"score"`
	WordsRank   int     `json:"fts_rank" doc:"From 1; 0 if it shares no word with the query."`
	MeaningRank int     `json:"vector_rank" doc:"From 1; 0 if it was not ranked by meaning."`
}

func relevanceOf(h archival.Hit) Relevance { return Relevance{h.Score, h.WordsRank, h.MeaningRank} }

// FoundPassagesOf returns the results of a search in an agent's passages. Times are in the agent's zone.
func FoundPassagesOf(hits []archival.Hit, zone *time.Location) FoundPassages {
	return FoundPassages{Count: len(hits), Results: rest.Each(hits, func(h archival.Hit) FoundPassage {
		at := h.HappenedAt.In(zone).Format(time.RFC3339)
		return FoundPassage{ID: h.ID, Content: h.Text, Timestamp: at, Tags: h.Tags, Relevance: relevanceOf(h),
			Validity: h.Validity, SupersededBy: h.SupersededBy, Ended: h.Ended, Explanation: h.Explanation}
	})}
}

// defaultTopK is how many passages a search returns by default (Letta: 5).
const defaultTopK = 5

// ArchivalQuery returns the search in an agent's passages. Times without an offset are in zone, the agent's.
func (p PassageSearch) ArchivalQuery(agentID string, zone *time.Location) (archival.Query, error) {
	q := archival.Query{Text: p.Query, AgentID: agentID, Tags: p.Tags,
		Match: archival.Match(p.Match), Filter: json.RawMessage(p.Filter), Zone: zone,
		ByTime: p.ByTime(),
		Limit:  cmp.Or(p.TopK, defaultTopK), Offset: p.Offset, After: p.After, Weight: p.Weight, Explain: p.Explain,
		WordsOnly: recall.Mode(p.Mode) == recall.ByWords, MeaningOnly: recall.Mode(p.Mode) == recall.ByMeaning}
	var err error
	if q.Held, err = p.Held(zone); err != nil {
		return q, err
	}
	q.Start, q.End, err = parseSpan(p.Start, p.End, zone)
	return q, err
}

// SearchPassages is a request to search the organization's passages.
type SearchPassages struct {
	Query     rest.Opt[string]   `json:"query,omitzero" doc:"The newest are returned if there is none."`
	Mode      rest.Opt[string]   `json:"search_mode,omitzero" enum:"vector,fts,hybrid" doc:"hybrid if absent"`
	AgentID   rest.Opt[string]   `json:"agent_id,omitzero" doc:"In the archives of an agent."`
	ArchiveID rest.Opt[string]   `json:"archive_id,omitzero" doc:"In one archive. With agent_id, one that the agent has."`
	Tags      rest.Opt[[]string] `json:"tags,omitzero" doc:"An empty tag finds nothing: no passage has one."`
	Match     rest.Opt[string]   `json:"tag_match_mode,omitzero" enum:"any,all"`
	Limit     rest.Opt[int]      `json:"limit,omitzero" minimum:"1" maximum:"100" doc:"50 if absent."`
	Offset    rest.Opt[int]      `json:"offset,omitzero" minimum:"0" maximum:"10000" doc:"Results to leave out."`
	After     rest.Opt[string]   `json:"after,omitzero" doc:"The id of a passage: the results behind it."`
	StartDate rest.Opt[string]   `json:"start_date,omitzero" doc:"ISO 8601; in the agents' timezone if it has none."`
	EndDate   rest.Opt[string]   `json:"end_date,omitzero" doc:"A date is the whole of that day."`
	AsOf      rest.Opt[string]   `json:"as_of,omitzero" doc:"What held at this time, in ISO 8601; else what holds now."`
	Ended     rest.Opt[bool]     `json:"ended,omitzero" doc:"Also what has ended, and what has not begun."`
	UserID    rest.Opt[string]   `json:"user_id,omitzero" doc:"Of this user and of nobody: an identity."`

	Filter  rest.Filter      `json:"filter,omitzero" doc:"Only passages that fit."`
	OrderBy rest.Opt[string] `json:"order_by,omitzero" enum:"relevance,time" doc:"time: the newest of the results first."`
}

// PassageHit is a passage of the organization that a search found.
type PassageHit struct {
	Passage  ArchivalPassage `json:"passage"`
	Score    float64         `json:"score"`
	Metadata Relevance       `json:"metadata"`

	SearchedFor string `json:"searched_for,omitempty"`

	Explanation *rank.HitExplanation `json:"explain,omitempty" doc:"How it was ranked, with explain=true."`
}

// ManyPassages are passages to create together.
type ManyPassages struct {
	Passages []NewPassage `json:"passages" doc:"1 to 10,000, all of them or none."`
}

// ArchivalQuery returns the search in the organization's passages. Times without an offset are in zone.
func (p SearchPassages) ArchivalQuery(zone *time.Location) (archival.Query, error) {
	q := archival.Query{Text: p.Query.Value, AgentID: p.AgentID.Value,
		ArchiveID: p.ArchiveID.Value, Tags: p.Tags.Value, ByTime: p.OrderBy.Value == byTime,
		Filter: json.RawMessage(p.Filter), Zone: zone,
		Match: archival.Match(p.Match.Value), Limit: cmp.Or(p.Limit.Value, 50), Offset: p.Offset.Value, After: p.After.Value,
		WordsOnly: recall.Mode(p.Mode.Value) == recall.ByWords, MeaningOnly: recall.Mode(p.Mode.Value) == recall.ByMeaning}
	var err error
	if q.Held, err = heldAt("body", p.AsOf.Value, p.Ended.Value, zone); err != nil {
		return q, err
	}
	q.Start, q.End, err = parseSpan(p.StartDate.Value, p.EndDate.Value, zone)
	return q, err
}

// PassageHitOf returns a search result in Letta's shape.
func PassageHitOf(h archival.Hit) PassageHit {
	return PassageHit{Passage: PassageOf(h.Passage), Score: h.Score, Metadata: relevanceOf(h), Explanation: h.Explanation}
}

// SpanWarnings warns if a search ends before it starts, because then it finds nothing.
func SpanWarnings(start, end *time.Time) []string {
	if start == nil || end == nil || !start.After(*end) {
		return nil
	}
	return []string{"The search starts at " + start.Format(time.RFC3339) + ", which is after its end at " +
		end.Format(time.RFC3339) + ", so that nothing is found"}
}

// parseSpan parses the start and the end of a time span; each may be empty.
func parseSpan(from, to string, zone *time.Location) (start, end *time.Time, err error) {
	if start, err = recall.ParseStart(from, zone); err == nil {
		end, err = recall.ParseEnd(to, zone)
	}
	return start, end, err
}
