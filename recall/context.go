package recall

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/pgvector/pgvector-go"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed"
)

// What a message gains from what is around it, in shares of the best message's own score. A question is seldom answered in its own words,
// but often beside them: on dialogues, neighbours bring 8 points of recall at 10, sessions and speakers 4 more. Where messages have
// nothing to do with each other, as functions of a program, they cost 2.
const (
	sessionShare     = 0.5  // of the score that its session has as one text
	answerShare      = 0.15 // of the score of a question just before
	participantBonus = 0.15 // where the query names who speaks
	dayBonus         = 0.3  // where the query names the day
	monthBonus       = 0.15 // the month
	yearBonus        = 0.05 // the year alone
)

// neighbourShares are the shares of the scores of the messages one, two and more places before and after.
var neighbourShares = []float64{0.3, 0.2}

// Bounds of the work that takes.
const (
	surrounded   = 50 // candidates, the best, whose neighbours become candidates too
	sessionsMost = 50
	sessionTerms = 12 // of a query, the rarest, that a session is scored by
)

// candidate is a message on its way to be a hit.
type candidate struct {
	Key          int64     `db:"key"`
	Conversation int64     `db:"conversation_key"`
	Position     int       `db:"position"`
	Session      int       `db:"session"`
	Name         *string   `db:"name"`
	Opening      *string   `db:"opening"` // of the text
	Asks         bool      `db:"asks"`    // its text ends with a question
	CreatedAt    time.Time `db:"created_at"`

	Own         float64 `db:"-"` // its own score
	Score       float64 `db:"-"` // with what it gains
	WordsRank   int     `db:"-"`
	MeaningRank int     `db:"-"`
}

type place struct {
	conversation int64
	position     int
}

// inContext ranks what the arms of a search found by what stands around it, and adds what stands next to the best.
func (s *Store) inContext(ctx context.Context, in scope, q embed.Query, words []embed.Hit, scored []embed.Scored) ([]candidate, error) {
	if len(scored) == 0 {
		return nil, nil
	}
	all, err := s.candidates(ctx, in, scored)
	if err != nil {
		return nil, err
	}
	own := make(map[place]float64, len(all))
	asked := make(map[place]float64, len(all))
	for _, c := range all {
		own[place{c.Conversation, c.Position}] = c.Own
		if c.Asks {
			asked[place{c.Conversation, c.Position}] = c.Own
		}
	}
	for i := range all {
		c := &all[i]
		at := func(offset int) float64 { return own[place{c.Conversation, c.Position + offset}] }
		c.Score = c.Own + answerShare*asked[place{c.Conversation, c.Position - 1}]
		for n, share := range neighbourShares {
			c.Score += share * (at(-n-1) + at(n+1))
		}
	}
	best(all)
	if err := s.addSessions(ctx, all, q, bestScore(words)); err != nil {
		return nil, err
	}
	addParticipants(all, in.q.Text)
	addDates(all, in.q.Text, in.q.Zone)
	best(all)
	return all, nil
}

// best sorts candidates, the best first, the newer first among equals.
func best(all []candidate) {
	slices.SortFunc(all, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(b.Key, a.Key))
	})
}

func bestScore(hits []embed.Hit) float64 {
	top := 0.0
	for _, h := range hits {
		top = max(top, h.Score)
	}
	return top
}

// candidates reads where the scored messages stand, and those next to the best of them.
func (s *Store) candidates(ctx context.Context, in scope, scored []embed.Scored) ([]candidate, error) {
	keys := make([]int64, len(scored))
	byKey := make(map[int64]embed.Scored, len(scored))
	for i, r := range scored {
		keys[i], byKey[r.ID] = r.ID, r
	}
	args := in.args()
	args["keys"], args["top"] = keys, keys[:min(surrounded, len(keys))]
	const columns = `m.key, m.conversation_key, m.position, m.session, m.name, left(m.content -> 0 ->> 'text', 80) AS opening,
		coalesce(right(rtrim(m.content -> 0 ->> 'text'), 1) = '?', false) AS asks, m.created_at`
	all, err := db.All[candidate](ctx, s.db, `
		SELECT `+columns+` FROM messages m WHERE m.org = @org AND m.key = ANY (@keys)
		UNION ALL
		SELECT `+columns+`
		FROM (
			SELECT DISTINCT b.conversation_key, b.position + n AS position
			FROM messages b CROSS JOIN generate_series(-2, 2) AS n
			WHERE b.org = @org AND b.key = ANY (@top)
		) near JOIN messages m USING (conversation_key, position)
		WHERE`+in.where()+` AND m.key <> ALL (@keys)`, args)
	for i := range all {
		r := byKey[all[i].Key]
		all[i].Own, all[i].WordsRank, all[i].MeaningRank = r.Score, r.WordsRank, r.MeaningRank
	}
	return all, err
}

// addSessions adds to the candidates what their sessions are worth, each taken for one text. top is the best score of a message by words,
// in which a session's is measured.
func (s *Store) addSessions(ctx context.Context, all []candidate, q embed.Query, top float64) error {
	if top == 0 {
		return nil
	}
	sessions := map[place]float64{}
	var conversations []int64
	var firsts []int
	for _, c := range all {
		at := place{c.Conversation, c.Session}
		if _, known := sessions[at]; known || len(sessions) == sessionsMost {
			continue
		}
		sessions[at] = 0
		conversations, firsts = append(conversations, c.Conversation), append(firsts, c.Session)
	}
	idf := weights(q)
	terms := q.Rarest[:min(sessionTerms, len(q.Rarest))]
	args := pgx.StrictNamedArgs{"conversations": conversations, "sessions": firsts}
	sums := make([]string, len(terms))
	for i, t := range terms {
		name := fmt.Sprintf("t%d", i)
		args[name] = pgvector.NewSparseVectorFromMap(map[int32]float32{t: 1}, embed.Lexicon)
		sums[i] = "-sum(m.lex <#> @" + name + ")"
	}
	type row struct {
		Conversation int64     `db:"conversation_key"`
		Session      int       `db:"session"`
		Tokens       int64     `db:"tokens"`
		Counts       []float64 `db:"counts"`
	}
	rows, err := db.All[row](ctx, s.db, `
		SELECT m.conversation_key, m.session, sum(m.tokens) AS tokens, ARRAY[`+strings.Join(sums, ", ")+`]::float8[] AS counts
		FROM unnest(@conversations::bigint[], @sessions::integer[]) AS wanted (conversation_key, session)
		JOIN messages m ON m.conversation_key = wanted.conversation_key AND m.session = wanted.session
		               AND m.position BETWEEN wanted.session AND wanted.session + `+fmt.Sprint(sessionMessages)+`
		WHERE m.lex IS NOT NULL
		GROUP BY m.conversation_key, m.session`, args)
	if err != nil {
		return err
	}
	for _, r := range rows {
		score := 0.0
		for i, t := range terms {
			score += idf[t] * embed.Saturated(r.Counts[i], float64(r.Tokens)*termsPerToken)
		}
		sessions[place{r.Conversation, r.Session}] = score
	}
	for i := range all {
		all[i].Score += sessionShare * sessions[place{all[i].Conversation, all[i].Session}] / top
	}
	return nil
}

// termsPerToken is how many terms that a search knows come of a token.
const termsPerToken = 0.5

func weights(q embed.Query) map[int32]float64 {
	all := make(map[int32]float64, len(q.Rarest))
	values := q.Vector.Values()
	for i, t := range q.Vector.Indices() {
		all[t] = float64(values[i])
	}
	return all
}

// speaker is the name at the beginning of a text such as "Ann: hello".
var speaker = regexp.MustCompile(`^([\pL][\pL\pN_.'-]{1,30}(?: [\pL][\pL\pN_.'-]{1,30})?): `)

func (c candidate) speaker() string {
	if c.Name != nil {
		return strings.ToLower(*c.Name)
	}
	if c.Opening != nil {
		if found := speaker.FindStringSubmatch(*c.Opening); found != nil {
			return strings.ToLower(found[1])
		}
	}
	return ""
}

var word = regexp.MustCompile(`[\pL\pN_]+`)

// addParticipants adds to the candidates that someone said whom the query names. Who is named with everybody else is not told apart.
func addParticipants(all []candidate, query string) {
	asked := map[string]bool{}
	for _, w := range word.FindAllString(strings.ToLower(query), -1) {
		asked[w] = true
	}
	named := func(who string) bool {
		parts := word.FindAllString(who, -1)
		return len(parts) > 0 && len(parts[0]) > 1 && asked[parts[0]]
	}
	everybody := true
	for _, c := range all {
		if who := c.speaker(); who != "" && !named(who) {
			everybody = false
		}
	}
	for i := range all {
		if !everybody && named(all[i].speaker()) {
			all[i].Score += participantBonus
		}
	}
}

// addDates adds to the candidates of a time that the query names.
func addDates(all []candidate, query string, zone *time.Location) {
	dates := datesIn(query)
	if len(dates) == 0 {
		return
	}
	if zone == nil {
		zone = time.UTC
	}
	for i := range all {
		bonus := 0.0
		for _, d := range dates {
			if d.holds(all[i].CreatedAt.In(zone)) {
				bonus = max(bonus, d.bonus())
			}
		}
		all[i].Score += bonus
	}
}
