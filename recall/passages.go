package recall

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed/rank"
)

// triedPassages is how many passages of a long message are compared by the nearness of the query's words.
const triedPassages = 3

// foundPassage is a passage of a long message that has words of a query.
type foundPassage struct {
	Key   int64   `db:"key"` // of the message
	At    int     `db:"at"`
	Score float64 `db:"score"` // BM25
	text  string
	last  bool // the message's text ends with it
}

// snippet returns the part of the passage that contains the most of the query's words, within the message's searchable
// text.
func (p *foundPassage) snippet(query string) string {
	s := snippet(p.text, query)
	if p.At > 0 && !strings.HasPrefix(s, "…") {
		s = "…" + s
	}
	if !p.last && !strings.HasSuffix(s, "…") {
		s = strings.TrimRight(s, "\n") + "…"
	}
	return s
}

// passagesWith returns key → the passages of messages with the highest scores by words, the best first, with their
// texts. Messages that are not long have none.
func (s *Store) passagesWith(ctx context.Context, org db.Org, keys []int64, found rank.Ranking) (
	map[int64][]foundPassage, error) {
	list, err := db.All[foundPassage](ctx, s.db, `
		SELECT key, at, score FROM (
			SELECT p.message_key AS key, p.at, -(p.lex <#> @q) AS score,
			       row_number() OVER (PARTITION BY p.message_key ORDER BY p.lex <#> @q, p.at) AS place
			FROM message_pieces p WHERE p.org = @org AND p.message_key = ANY (@keys)
		) p
		WHERE place <= @most AND score > 0
		ORDER BY key, place`, pgx.StrictNamedArgs{"org": org, "keys": keys, "q": found.Query.Vector,
		"most": triedPassages})
	if err != nil || len(list) == 0 {
		return nil, err
	}
	var long []int64
	for _, p := range list {
		long = append(long, p.Key)
	}
	texts, err := s.searchedTexts(ctx, org, slices.Compact(long))
	passages := make(map[int64][]foundPassage, len(texts))
	for _, p := range list {
		if text := texts[p.Key]; p.At < len(text) {
			p.text = passagesOf(text[p.At:min(len(text), p.At+2*passageBytes)])[0]
			p.last = p.At+len(p.text) == len(text)
			passages[p.Key] = append(passages[p.Key], p)
		}
	}
	return passages, err
}

// searchedTexts returns key → whole text by which searches find a message.
func (s *Store) searchedTexts(ctx context.Context, org db.Org, keys []int64) (map[int64]string, error) {
	type row struct {
		Key     int64   `db:"key"`
		Role    Role    `db:"role"`
		Name    *string `db:"name"`
		Content []Part  `db:"content"`
	}
	rows, err := db.All[row](ctx, s.db, `
		SELECT key, role, name, content FROM messages WHERE org = $1 AND key = ANY ($2) ORDER BY key`, org, keys)
	if err != nil {
		return nil, err
	}
	var clips []string
	for _, r := range rows {
		for _, p := range r.Content {
			if p.Clip != nil {
				clips = append(clips, p.Clip.ID)
			}
		}
	}
	whole, err := s.clippedTexts(ctx, org, clips)
	texts := make(map[int64]string, len(rows))
	for _, r := range rows {
		for i, p := range r.Content {
			if p.Clip != nil {
				r.Content[i].Text = cmp.Or(whole[p.Clip.ID], p.Text)
			}
		}
		texts[r.Key] = searchText(r.Role, r.Name, r.Content)
	}
	return texts, err
}

// best returns the passage that a message is found by, and what the message gains for its words that are near each
// other. The message has the score of its first passage already. best returns nil if there is no passage.
func best(passages []foundPassage, found rank.Ranking) (p *foundPassage, gain float64) {
	for _, other := range passages {
		near := found.Near(other.text) - found.ShareOfWords(passages[0].Score-other.Score)
		if p == nil || near > gain {
			p, gain = &other, near
		}
	}
	return p, gain
}

// passageGain returns what a long message gains in place of its share by meaning, which is of its opening alone: as far
// as the words of its passage are sure to be what the query asks for, they stand for the meaning, too. near is the gain
// of words that are near each other.
func passageGain(own rank.Scored, near float64, found rank.Ranking) float64 {
	w := found.Weights
	if w.Words == 0 || w.Meaning == 0 {
		return 0
	}
	byWords := found.Certainty(rank.Scored{Words: own.Words + near/w.Words})
	return w.Meaning * (max(openingShare*own.Meaning, byWords) - own.Meaning)
}
