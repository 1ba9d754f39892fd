package lettadb

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/loci-memory/loci/archival"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/embed/endpoint"
)

// archive is an archive in Letta's database.
type archive struct {
	row
	Name        string
	Description *string
	Metadata    json.RawMessage  `json:"metadata_"`
	Embedding   *embeddingConfig `json:"embedding_config"`
}

// embeddingConfig says which model made vectors.
type embeddingConfig struct {
	Endpoint  *string `json:"embedding_endpoint"`
	Model     string  `json:"embedding_model"`
	Dimension int     `json:"embedding_dim"`
	Handle    *string `json:"handle"`
}

func (c *embeddingConfig) handle() *string {
	switch {
	case c == nil:
		return nil
	case c.Handle != nil && *c.Handle != "":
		return c.Handle
	case c.Model != "":
		return &c.Model
	}
	return nil
}

// archives imports the organization's archives, with their passages.
func (r *run) archives(ctx context.Context) error {
	all, err := list[archive](ctx, r, "archives", `
		SELECT * FROM archives WHERE organization_id = $1 ORDER BY id`, r.source)
	if err != nil {
		return err
	}
	for _, a := range all {
		_, err := r.Agents.Archival.Archive(ctx, r.org, a.ID)
		missing, err := absent(err)
		switch {
		case err != nil:
			return err
		case !missing:
			r.report.stored("archives", false)
		default:
			err := r.item(ctx, "archives", a.ID, func(txRun *run) error {
				return txRun.Agents.Archival.RestoreArchive(ctx, txRun.org, archival.PortableArchive{ID: a.ID,
					Name: clipped(plainName(a.Name, "archive"), 255), Description: cleanText(a.Description),
					Metadata: object(a.Metadata), Embedding: a.Embedding.handle(), CreatedAt: a.created(),
					UpdatedAt: a.updated()})
			})
			if err != nil {
				return err
			}
		}
		if err := r.passages(ctx, a.ID); err != nil {
			return err
		}
	}
	return nil
}

// passage is an archival passage in Letta's database.
type passage struct {
	row
	Text      string
	Metadata  json.RawMessage `json:"metadata_"`
	Tags      []string
	MoreTags  []string `json:"more_tags"` // from the table of tags
	Config    *embeddingConfig
	Embedding *string // in pgvector's text format
}

// UnmarshalJSON implements json.Unmarshaler. Tags that are no list of texts count as none.
func (p *passage) UnmarshalJSON(raw []byte) error {
	var v struct {
		row
		Text      string
		Metadata  json.RawMessage  `json:"metadata_"`
		Tags      json.RawMessage  `json:"tags"`
		MoreTags  []string         `json:"more_tags"`
		Config    *embeddingConfig `json:"embedding_config"`
		Embedding *string          `json:"embedding"`
	}
	err := json.Unmarshal(raw, &v)
	var tags []string
	_ = json.Unmarshal(v.Tags, &tags) // null, and older formats
	*p = passage{v.row, v.Text, v.Metadata, tags, v.MoreTags, v.Config, v.Embedding}
	return err
}

// passagesAtOnce is how many passages one transaction stores.
const passagesAtOnce = 250

func (r *run) passages(ctx context.Context, archiveID string) error {
	tags := `'[]'::json`
	if r.from.has("passage_tags") {
		tags = `(SELECT json_agg(tag ORDER BY tag) FROM passage_tags t WHERE t.passage_id = p.id AND NOT t.is_deleted)`
	}
	var page []passage
	for p, err := range each[passage](ctx, r, "archival_passages", `
		SELECT p.*, `+tags+` AS more_tags FROM archival_passages p
		WHERE archive_id = $1 ORDER BY created_at, id`, archiveID) {
		if err != nil {
			return err
		}
		if page = append(page, p); len(page) == passagesAtOnce {
			if err := r.page(ctx, archiveID, page); err != nil {
				return err
			}
			page = page[:0]
		}
	}
	return r.page(ctx, archiveID, page)
}

// page stores the passages of a page that Loci does not have. If a rule forbids one, the others are stored one by one.
func (r *run) page(ctx context.Context, archiveID string, page []passage) error {
	ids := make([]string, len(page))
	for n, p := range page {
		ids[n] = p.ID
	}
	stored, err := r.Agents.Archival.Stored(ctx, r.org, archiveID, ids)
	if err != nil {
		return err
	}
	page = slices.DeleteFunc(page, func(p passage) bool { return slices.Contains(stored, p.ID) })
	r.report.table("archival_passages").Present += len(ids) - len(page)
	return r.store(ctx, archiveID, page)
}

func (r *run) store(ctx context.Context, archiveID string, page []passage) error {
	if len(page) == 0 {
		return nil
	}
	t := r.report.table("archival_passages")
	leftOut, imported, notes := t.LeftOut, t.Imported, len(r.report.Notes)
	err := r.item(ctx, "archival_passages", page[0].ID, func(txRun *run) error {
		return txRun.restore(ctx, archiveID, page)
	})
	if err != nil || len(page) == 1 {
		return err
	}
	if t.LeftOut == leftOut {
		t.Imported += len(page) - 1
		return nil
	}
	t.LeftOut, t.Imported, r.report.Notes = leftOut, imported, r.report.Notes[:notes]
	for n := range page {
		if err := r.store(ctx, archiveID, page[n:n+1]); err != nil {
			return err
		}
	}
	return nil
}

// restore stores passages with their vectors.
func (r *run) restore(ctx context.Context, archiveID string, page []passage) error {
	var all []archival.Passage
	vectors := map[endpoint.Space]map[string][]float32{}
	for _, p := range page {
		parts, err := r.parts(archiveID, p)
		if err != nil {
			return err
		}
		all = append(all, parts...)
		vector, problem := p.vector()
		if problem != "" {
			r.report.note("passage %s: its vector is left out, and made anew. %s", p.ID, problem)
		}
		if vector == nil || len(parts) > 1 {
			continue
		}
		space, err := endpoint.UseSpace(ctx, r.Agents.DB, r.providerOf(p.Config), p.Config.Model, p.Config.Dimension)
		if err != nil {
			return err
		}
		if vectors[space] == nil {
			vectors[space] = map[string][]float32{}
		}
		vectors[space][p.ID] = vector
	}
	if err := r.Agents.Archival.RestorePassages(ctx, r.org, archiveID, all); err != nil {
		return err
	}
	for space, byID := range vectors {
		if err := r.Agents.Archival.RestoreVectors(ctx, r.org, space, byID); err != nil {
			return err
		}
	}
	return nil
}

// providerOf returns the provider in the space of Letta's vectors.
func (r *run) providerOf(c *embeddingConfig) string {
	provider := r.Provider
	if provider == "" && c.Endpoint != nil {
		provider = *c.Endpoint
	}
	return strings.TrimRight(provider, "/")
}

// parts returns the Loci passages for a passage of Letta's: several in a row if its text is too long for one.
func (r *run) parts(archiveID string, p passage) ([]archival.Passage, error) {
	if parsed := db.UUID("passage-", p.ID); parsed == uuid.Nil {
		return nil, db.Invalid("its id is not passage- and a UUID")
	}
	tags := db.Tags(slices.Concat(p.Tags, p.MoreTags))
	for n, t := range tags {
		tags[n] = clipped(t, 200)
	}
	if len(tags) > archival.MaxTags {
		r.report.note("passage %s: of its %d tags the first %d are kept.", p.ID, len(tags), archival.MaxTags)
		tags = tags[:archival.MaxTags]
	}
	var all []archival.Passage
	for n, text := range archival.Split(db.Clean(p.Text)) {
		id := p.ID
		if n > 0 {
			id = "passage-" + derived(p.ID, fmt.Sprint(n))
		}
		metadata := json.RawMessage(`{}`)
		if m := object(p.Metadata); m != nil {
			metadata = m
		}
		all = append(all, archival.Passage{ID: id, ArchiveID: archiveID, Text: text, Tags: tags, Metadata: metadata,
			HappenedAt: p.created(), StoredAt: p.created(), UpdatedAt: p.updated()})
	}
	if len(all) > 1 {
		r.report.note("passage %s: it is longer than a passage may be, and became %d.", p.ID, len(all))
	}
	return all, nil
}

// derived returns a UUID that depends only on an id and a word, so that another import gives the same UUID.
func derived(id, of string) string {
	return uuid.NewHash(sha256.New(), uuid.NameSpaceURL, []byte("letta:"+id+":"+of), 4).String()
}

// vector returns the vector of a passage, without the zeros that Letta appends up to 4,096 numbers; nil if there is
// none. If the vector cannot be used, it returns the reason.
func (p passage) vector() (vector []float32, problem string) {
	if p.Embedding == nil {
		return nil, ""
	}
	if p.Config == nil || p.Config.Model == "" || p.Config.Dimension < 1 {
		return nil, "Letta does not say of which model it is."
	}
	n := p.Config.Dimension
	if err := json.Unmarshal([]byte(*p.Embedding), &vector); err != nil {
		return nil, "It is no list of numbers."
	}
	switch padding := vector[min(n, len(vector)):]; {
	case n > endpoint.MaxDimension:
		return nil, fmt.Sprintf("It has %d numbers, and Loci stores at most %d.", n, endpoint.MaxDimension)
	case len(vector) < n:
		return nil, fmt.Sprintf("It has %d numbers, and its model's have %d.", len(vector), n)
	case slices.ContainsFunc(padding, func(x float32) bool { return x != 0 }):
		return nil, fmt.Sprintf("It has numbers behind the first %d, as many as its model's have.", n)
	}
	vector = vector[:n]
	if embed.Normalize(vector) == nil {
		return nil, cmp.Or(problem, "All its numbers are zero.")
	}
	return vector, ""
}
