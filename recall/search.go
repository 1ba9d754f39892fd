package recall

import (
	"context"
	"strings"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed/lexicon"
	"github.com/loci-memory/loci/embed/rank"
)

// Search finds messages by words, and by meaning if an embedding model answers. ErrNotFound if the agent or the
// conversation does not exist; ErrInvalid if the text is too long; ErrNoEndpoint if the mode is ByMeaning and there is
// no model.
func (s *Store) Search(ctx context.Context, org db.Org, q Query) (Results, error) {
	if q.Mode == ByMeaning && s.o.Endpoint == nil {
		return Results{}, ErrNoEndpoint
	}
	if err := rank.CheckQuery(q.Text); err != nil {
		return Results{}, err
	}
	q.Limit = min(max(q.Limit, 1), SearchMax)
	f, err := s.searchFilter(ctx, org, q)
	if err != nil || f.rows == 0 {
		return Results{Hits: []Hit{}}, err
	}
	if f.after, err = s.afterKey(ctx, f); err != nil {
		return Results{}, err
	}
	if strings.TrimSpace(q.Text) == "" {
		return s.newest(ctx, f)
	}
	out, spelling, err := rank.Respelled(ctx, s.db, s.search, s.question(ctx, f),
		func(text string, guessed bool) (rank.Searched[Results], error) {
			f.q.Text, f.guessed = text, guessed
			return s.ranked(ctx, f)
		})
	out.SearchedFor = spelling
	return out, err
}

// ranked searches once, by words, by meaning or by both.
func (s *Store) ranked(ctx context.Context, f searchFilter) (found rank.Searched[Results], err error) {
	q := f.q
	ranking, err := s.rank(ctx, f)
	if err != nil {
		return found, err
	}
	found.Ranking = ranking
	all, err := s.rankInContext(ctx, f, ranking)
	if err != nil {
		return found, err
	}
	out := Results{Ranked: ByWords}
	switch {
	case !ranking.ByWords:
		out.Ranked = ByMeaning
	case ranking.ByMeaning:
		out.Ranked = ByBoth
	}
	rows := calibrated(all, &ranking)
	if q.ByTime {
		rows, err = s.newestFirst(ctx, f, rows)
	} else {
		rows, err = rank.Behind(rows, f.after)
	}
	if err != nil {
		return found, err
	}
	f.passages = map[int64]*foundPassage{}
	for _, c := range all {
		f.passages[c.Key] = c.Passage
	}
	out.More = len(rows) > max(q.Offset, 0)+q.Limit
	out.Hits, err = s.confirmed(ctx, f, rows, ranking, contextOf(all, ranking))
	out.More = out.More && len(out.Hits) > 0
	out.Remarks = ranking.Remarks(len(out.Hits), out.More)
	if err == nil {
		err = s.addContext(ctx, f, &out, all, ranking)
	}
	for _, h := range out.Hits {
		found.Texts = append(found.Texts, Searched(h.Message))
	}
	found.Results = out
	return found, err
}

// newestFirst returns ranked rows with the newest first, those behind the message after which the page begins. That
// message need not be among them.
func (s *Store) newestFirst(ctx context.Context, f searchFilter, rows []rank.Scored) ([]rank.Scored, error) {
	scored := make(map[int64]rank.Scored, len(rows))
	keys := make([]int64, len(rows))
	for i, r := range rows {
		keys[i], scored[r.ID] = r.ID, r
	}
	ordered, err := db.All[int64](ctx, s.db, `
		SELECT m.key FROM messages m
		WHERE m.org = $1 AND m.key = ANY ($2) AND ($3 = 0 OR (m.created_at, m.key) < (
			SELECT a.created_at, a.key FROM messages a WHERE a.org = $1 AND a.key = $3))
		ORDER BY m.created_at DESC, m.key DESC`, f.org, keys, f.after)
	behind := make([]rank.Scored, len(ordered))
	for i, key := range ordered {
		behind[i] = scored[key]
	}
	return behind, err
}

// afterKey returns the key of the hit after which the page begins; 0 if the query names none. ErrInvalid if that
// message does not exist.
func (s *Store) afterKey(ctx context.Context, f searchFilter) (int64, error) {
	if f.q.After == "" {
		return 0, nil
	}
	key, err := db.One[int64](ctx, s.db, `SELECT key FROM messages WHERE org = $1 AND id = $2`, f.org, uuidOf(f.q.After))
	if isNotFound(err) {
		return 0, db.Invalid("after: there is no message %s", db.Short(f.q.After))
	}
	return key, err
}

// rank ranks each message by its own words and meaning.
func (s *Store) rank(ctx context.Context, f searchFilter) (rank.Ranking, error) {
	return s.search.Rank(ctx, s.db, s.question(ctx, f))
}

// question returns a question that ranks each message by its own words and meaning.
func (s *Store) question(ctx context.Context, f searchFilter) rank.Question {
	filters, most := f.filters(), 0
	if f.few != nil {
		most = f.rows
		for i := range filters {
			filters[i].Few = s.keys(ctx, filters[i])
		}
	} else if !f.narrowed.Empty() {
		for i := range filters {
			filters[i].Few = s.keys(ctx, filters[i])
		}
	}
	return rank.Question{
		Org:         f.org,
		Text:        f.q.Text,
		Filters:     filters,
		Most:        most,
		Limit:       rank.ArmRows, // each page reads the same number, because messages gain from their neighbors
		WordsOnly:   f.q.Mode == ByWords,
		MeaningOnly: f.q.Mode == ByMeaning,
		Weight:      f.q.Weight,
		AsWritten:   f.q.AsWritten,
		Guessed:     f.guessed,
		Scope:       f.statisticsScope(),
		Sample:      func(ctx context.Context) (*lexicon.IDF, error) { return s.sample(ctx, f) },
		Texts:       func(ctx context.Context, most int) ([]string, error) { return s.newestTexts(ctx, f, most) },
		Owners:      func(ctx context.Context) ([]int64, error) { return s.agentKeys(ctx, f) },
	}
}

// newestTexts returns the beginnings of the newest messages of a search's scope, at most so many.
func (s *Store) newestTexts(ctx context.Context, f searchFilter, most int) ([]string, error) {
	scope, of, place := `org = $1 AND $2 = 0`, int64(0), `key`
	switch {
	case f.conversation != 0:
		scope, of, place = `org = $1 AND conversation_key = $2`, f.conversation, `position`
	case f.agent != 0:
		scope, of, place = `org = $1 AND agent_key = $2`, f.agent, `seq`
	}
	return db.All[string](ctx, s.db, `
		SELECT coalesce(left(content #>> '{0,text}', $4), '') FROM messages
		WHERE `+scope+` AND lex IS NOT NULL
		ORDER BY `+place+` DESC LIMIT $3`, f.org, of, most, pieceBytes)
}

// agentKeys returns the keys of the agents that own the messages a search may see.
func (s *Store) agentKeys(ctx context.Context, f searchFilter) ([]int64, error) {
	if f.agent != 0 {
		return []int64{f.agent}, nil
	}
	return db.All[int64](ctx, s.db, `
		SELECT key FROM agents WHERE org = $1 ORDER BY key LIMIT $2`, f.org, rank.MaxOwners+1)
}

// newest returns the newest messages that a search may see.
func (s *Store) newest(ctx context.Context, f searchFilter) (Results, error) {
	filter := f.sql()
	filter.Args["limit"], filter.Args["offset"], filter.Args["after"] = f.q.Limit+1, max(f.q.Offset, 0), f.after
	keys, err := db.All[int64](ctx, s.db, `
		SELECT r.key FROM messages r
		WHERE `+filter.Rows+` AND (@after = 0 OR (r.created_at, r.key) < (
			SELECT created_at, key FROM messages WHERE org = @org AND key = @after))
		ORDER BY r.created_at DESC, r.key DESC
		LIMIT @limit OFFSET @offset`, filter.Args)
	if err != nil {
		return Results{}, err
	}
	more := len(keys) > f.q.Limit
	keys = keys[:min(len(keys), f.q.Limit)]
	rows := make([]rank.Scored, len(keys))
	for i, key := range keys {
		rows[i].ID = key
	}
	f.q.Offset = 0 // the rows are already the page's
	hits, err := s.hits(ctx, f, rows, nil)
	return Results{Hits: hits, More: more}, err
}

// confirmed reads the best messages of a ranking, and messages near them. It returns no hits if it dropped some and no
// other was found by words, by meaning or by a time in the query.
func (s *Store) confirmed(ctx context.Context, f searchFilter, rows []rank.Scored, ranking rank.Ranking,
	isContext func(Hit) bool) ([]Hit, error) {
	found, dropped := len(f.periods) > 0, false
	hits, err := s.hits(ctx, f, rows, func(h *Hit, text string) bool {
		if !ranking.Confirm(text, &h.WordsRank, h.MeaningRank) {
			dropped = true
			return false
		}
		if f.q.OnlyMatches && isContext(*h) {
			return false
		}
		found = found || h.WordsRank > 0 || h.MeaningRank > 0
		return true
	})
	if dropped && !found {
		hits = []Hit{}
	}
	return hits, err
}

// hits reads the best messages, as many as the query asks for. Unless keep is nil, it gets each message's text and
// reports whether the message is a hit.
func (s *Store) hits(ctx context.Context, f searchFilter, rows []rank.Scored,
	keep func(h *Hit, text string) bool) ([]Hit, error) {
	return rank.ReadHits[Hit](ctx, s.db, rank.HitQuery[Hit]{Org: f.org, Offset: f.q.Offset,
		Limit: f.q.Limit, SQL: `
		SELECT ` + messageColumns + `, ` + rank.HitColumns + `
		FROM ` + rank.HitTable + rank.KeyedRow("messages", "hit.key") + ` m` +
			rank.KeyedRow("conversations", "m.conversation_key") + ` c` + rank.KeyedRow("agents", "c.agent_key") + ` a
		WHERE ` + shownOf(f.q.WithReset) + `
		ORDER BY hit.place`, Keep: func(h *Hit) (bool, error) {
			whole, err := s.whole(ctx, f.org, []Message{h.Message})
			if err != nil {
				return false, err
			}
			text := Searched(whole[0])
			if h.Snippet = snippet(text, f.q.Text); f.passages[h.Key] != nil {
				h.Snippet = f.passages[h.Key].snippet(f.q.Text)
			}
			return keep == nil || keep(h, text), nil
		}}, rows)
}
