package recall

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed"
)

// Query asks for messages: those that Text is about, or the newest where it is empty. Empty fields do not narrow it.
type Query struct {
	Text         string
	AgentID      string // empty: of the whole organization
	Conversation string // an id, or DefaultConversation of AgentID
	Roles        []Role
	Start, End   *time.Time     // both ends belong to it
	Limit        int            // 1 to SearchMax; 0 is 1
	Unseen       bool           // without what the model sees of the conversation (or of the default one) anyway
	Mode         Mode           // empty is ByBoth
	Zone         *time.Location // in which the query's days and months are; nil is UTC
}

// Mode says what a search ranks by.
type Mode string

// The modes, as Letta names them. ByMeaning needs an embeddings endpoint; ByBoth does without where there is none.
const (
	ByBoth    Mode = "hybrid"
	ByWords   Mode = "fts"
	ByMeaning Mode = "vector"
)

// SearchMax is the most messages that a search returns.
const SearchMax = 100

// Hit is a message that a search found.
type Hit struct {
	Message
	Score       float64 `json:"score"`
	WordsRank   int     `json:"words_rank"`   // from 1; 0 if it shares no word with the query
	MeaningRank int     `json:"meaning_rank"` // from 1; 0 if it was not ranked by meaning
	Snippet     string  `json:"snippet"`
}

// Results are what a search found, the best first.
type Results struct {
	Hits     []Hit
	Ranked   Mode   // what they were ranked by, which is words where the endpoint did not answer; empty for the newest
	Wordless bool   // the query has no word that tells texts apart
	Note     string // a sentence on what the ranking lacks, empty if nothing
}

// Search finds messages: by words, and by meaning where an embeddings endpoint answers. ErrNotFound if the agent or the conversation is not
// there; ErrInvalid if it is to rank by meaning and there is no endpoint.
func (s *Store) Search(ctx context.Context, org db.Org, q Query) (Results, error) {
	if q.Mode == ByMeaning && s.o.Dense == nil {
		return Results{}, errNoEndpoint
	}
	q.Limit = min(max(q.Limit, 1), SearchMax)
	in, err := s.scope(ctx, org, q)
	if err != nil || in.rows == 0 {
		return Results{Hits: []Hit{}}, err
	}
	if strings.TrimSpace(q.Text) == "" {
		return s.newest(ctx, in)
	}
	idf, err := s.statistics(ctx, in)
	if err != nil {
		return Results{}, err
	}
	query := idf.Query(db.Clean(q.Text))
	out := Results{Ranked: ByWords, Wordless: len(query.Rarest) == 0}
	var words, meaning []embed.Hit
	if q.Mode != ByWords {
		if meaning, err = s.byMeaning(ctx, in, &out); err != nil {
			return Results{}, err
		}
	}
	if out.Ranked != ByMeaning {
		if words, err = s.byWords(ctx, in, idf, query); err != nil {
			return Results{}, err
		}
	}
	ranked, err := s.inContext(ctx, in, query, words, embed.Fuse(words, meaning, meaningWeight))
	if err != nil {
		return Results{}, err
	}
	out.Hits, err = s.hits(ctx, in, ranked)
	return out, err
}

// meaningWeight is that of an embeddings endpoint's vectors against the words.
const meaningWeight = 1.0

// newest are the last messages of a scope.
func (s *Store) newest(ctx context.Context, in scope) (Results, error) {
	args := in.args()
	args["limit"] = in.q.Limit
	keys, err := db.All[int64](ctx, s.db, `
		SELECT m.key FROM messages m WHERE`+in.where()+` ORDER BY m.created_at DESC, m.key DESC LIMIT @limit`, args)
	if err != nil {
		return Results{}, err
	}
	ranked := make([]candidate, len(keys))
	for i, key := range keys {
		ranked[i] = candidate{Key: key}
	}
	hits, err := s.hits(ctx, in, ranked)
	return Results{Hits: hits}, err
}

// manyAgents is of how many agents one query asks the index for terms.
const manyAgents = 5000

// byWords ranks by BM25: over a large scope the rows that share the query's rarest terms, where these are few; else, and where they are
// too few, all of the scope.
func (s *Store) byWords(ctx context.Context, in scope, idf *embed.IDF, q embed.Query) ([]embed.Hit, error) {
	if len(q.Rarest) == 0 {
		return nil, nil
	}
	terms, err := s.candidateTerms(ctx, in, idf, q)
	if err != nil {
		return nil, err
	}
	if len(terms) > 0 {
		hits, err := s.wordArm(ctx, in, q, terms)
		if err != nil || len(hits) >= in.q.Limit {
			return hits, err
		}
	}
	return s.wordArm(ctx, in, q, nil)
}

// candidateTerms are the terms by which the index finds the candidates of a large scope; none where all of it is to be read.
func (s *Store) candidateTerms(ctx context.Context, in scope, idf *embed.IDF, q embed.Query) ([]int64, error) {
	if in.rows <= s.indexRows {
		return nil, nil
	}
	return s.indexTerms(ctx, in, idf.Candidates(q))
}

// indexTerms are terms as the index has them, of each agent of the scope; none if these are too many.
func (s *Store) indexTerms(ctx context.Context, in scope, terms []int32) ([]int64, error) {
	agents := []int64{in.agent}
	if in.agent == 0 {
		var err error
		agents, err = db.All[int64](ctx, s.db, `SELECT key FROM agents WHERE org = $1 ORDER BY key LIMIT $2`, in.org, manyAgents+1)
		if err != nil || len(agents) > manyAgents {
			return nil, err
		}
	}
	var owned []int64
	for _, agent := range agents {
		owned = append(owned, embed.Owned(agent, terms)...)
	}
	return owned, nil
}

func (s *Store) wordArm(ctx context.Context, in scope, q embed.Query, terms []int64) ([]embed.Hit, error) {
	sql, args := in.wordSQL(q, terms)
	hits, err := db.All[embed.Hit](ctx, s.db, sql, args)
	return slices.DeleteFunc(hits, func(h embed.Hit) bool { return h.Score <= 0 }), err
}

// byTerms keeps the other indexes out of a statement that the one on terms answers: its terms name the agent already, and all of a large
// agent's entries would be read beside.
var byTerms = strings.NewReplacer("m.agent_key =", "m.agent_key + 0 =", "m.conversation_key =", "m.conversation_key + 0 =")

// wordSQL ranks a scope by words, or those of its rows that have one of the terms.
func (c scope) wordSQL(q embed.Query, terms []int64) (string, pgx.StrictNamedArgs) {
	args, where := c.args(), c.where()
	args["q"], args["limit"] = q.Vector, embed.ArmRows
	if len(terms) > 0 {
		args["terms"], where = terms, byTerms.Replace(where)+` AND m.terms && @terms`
	}
	return `
		SELECT id, -distance AS score FROM (
			SELECT m.key AS id, m.lex <#> @q AS distance FROM messages m
			WHERE` + where + `
			ORDER BY distance, id
			LIMIT @limit
		) nearest`, args
}

// hits reads the best candidates, as many as were asked for.
func (s *Store) hits(ctx context.Context, in scope, ranked []candidate) ([]Hit, error) {
	ranked = ranked[:min(len(ranked), in.q.Limit)]
	keys := make([]int64, len(ranked))
	for i, c := range ranked {
		keys[i] = c.Key
	}
	rows, err := db.All[Message](ctx, s.db, `
		SELECT `+messageColumns+` FROM unnest($2::bigint[]) WITH ORDINALITY AS wanted (key, place)
		JOIN `+messageTables+` ON m.key = wanted.key
		WHERE m.org = $1
		ORDER BY wanted.place`, in.org, keys)
	if err != nil {
		return nil, err
	}
	hits := make([]Hit, 0, len(rows))
	for _, m := range rows {
		c := ranked[slices.Index(keys, m.Key)]
		hits = append(hits, Hit{Message: m, Score: c.Score, WordsRank: c.WordsRank, MeaningRank: c.MeaningRank,
			Snippet: snippet(searchable(m.Role, m.Name, m.Content), in.q.Text)})
	}
	return hits, nil
}
