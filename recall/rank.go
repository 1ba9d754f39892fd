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
	"github.com/loci-memory/loci/embed/lexicon"
	"github.com/loci-memory/loci/embed/rank"
)

// Limits of the work.
const (
	maxSurrounded   = 50 // the best messages; the neighbors of each become candidates too
	maxSessions     = 50
	maxSessionTerms = 12 // the query's rarest terms, which score a session
)

// candidate is a message that may become a hit.
type candidate struct {
	Key          int64     `db:"key"`
	Conversation int64     `db:"conversation_key"`
	Position     int       `db:"position"`
	Session      int       `db:"session"`
	Name         *string   `db:"name"`
	Opening      *string   `db:"opening"` // how the text begins
	Asks         bool      `db:"asks"`    // the text ends with a question mark
	CreatedAt    time.Time `db:"created_at"`
	Wanted       bool      `db:"wanted"` // matches the query's roles and times; other candidates only add to scores nearby

	Own   rank.Scored `db:"-"` // zero if the search itself did not find it
	Score float64     `db:"-"` // includes gains
	Gains gains       `db:"-"`

	neighbors []neighbor // what each neighbor added; only for a query that asks to explain

	Passage *foundPassage `db:"-"` // of a long message, that the search found; nil if it is not known
}

// neighbor is what a message near a candidate added to its score.
type neighbor struct {
	key   int64
	value float64
}

// place is a position in a conversation: of a message, or of a session's first message.
type place struct {
	conversation int64
	position     int
}

// rankInContext ranks the messages that a search found, and the neighbors of the best ones, by their context too.
func (s *Store) rankInContext(ctx context.Context, f searchFilter, found rank.Ranking) ([]candidate, error) {
	rows, err := s.addPeriods(ctx, f, found.Rows)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	all, err := s.candidates(ctx, f, rows)
	if err != nil {
		return nil, err
	}
	addNeighbors(all, f.q.Explain)
	all = slices.DeleteFunc(all, func(c candidate) bool { return !c.Wanted })
	sortBest(all) // now the best sessions can be scored
	if err := s.addSessions(ctx, f.org, all, found); err != nil {
		return nil, err
	}
	addParticipants(all, f.q.Text)
	addWishes(all, f.q.Text)
	addDates(all, f.periods)
	sortBest(all)
	if err := s.rankByText(ctx, f.org, all, found); err != nil {
		return nil, err
	}
	return all, nil
}

// rankByText adds the gains from Ranking.Near to the scores of the best candidates, and sorts these candidates. Then
// the reranker orders the first of them, unless the query names only a time.
func (s *Store) rankByText(ctx context.Context, org db.Org, all []candidate, found rank.Ranking) error {
	near := all[:min(len(all), rank.NearRows)]
	texts, passages, err := s.textsOf(ctx, org, near, found)
	if err != nil {
		return err
	}
	for i, c := range near {
		near[i].Gains.near = found.Near(texts[c.Key])
		if p, gain := best(passages[c.Key], found); p != nil {
			near[i].Gains.near, near[i].Passage, texts[c.Key] = max(gain, near[i].Gains.near), p, p.text
			near[i].Gains.passage = passageGain(c.Own, near[i].Gains.near, found)
			near[i].Score += near[i].Gains.passage
		}
		near[i].Score += near[i].Gains.near
	}
	sortBest(near)
	if len(near) > 0 && !near[0].onlyTime() {
		judged := func(c candidate) rank.Judged { return rank.Judged{Key: c.Key, Text: texts[c.Key]} }
		rank.Rerank(ctx, found, near, judged, func(c *candidate) *float64 { return &c.Score })
	}
	return nil
}

// textsOf returns key → beginning of the text of candidates, and key → passages of the long ones. It returns neither if
// the ranking needs no texts.
func (s *Store) textsOf(ctx context.Context, org db.Org, all []candidate, found rank.Ranking) (
	texts map[int64]string, passages map[int64][]foundPassage, err error) {
	if found.BestWords == 0 && !found.Reranks() {
		return nil, nil, nil
	}
	type row struct {
		rank.Text
		Long bool `db:"long"`
	}
	keys := make([]int64, len(all))
	for i, c := range all {
		keys[i] = c.Key
	}
	rows, err := db.All[row](ctx, s.db, `
		SELECT key, left(coalesce(content -> 0 ->> 'text', ''), $3) AS text,
		       EXISTS (SELECT FROM message_pieces p WHERE p.org = $1 AND p.message_key = m.key) AS long
		FROM messages m WHERE org = $1 AND key = ANY ($2)`, org, keys, rank.NearChars)
	if err != nil {
		return nil, nil, err
	}
	var long []int64
	texts = make(map[int64]string, len(rows))
	for _, r := range rows {
		if texts[r.Key] = r.Text.Text; r.Long {
			long = append(long, r.Key)
		}
	}
	if len(long) > 0 && found.BestWords > 0 {
		passages, err = s.passagesWith(ctx, org, long, found)
	}
	return texts, passages, err
}

// onlyTime reports whether the query names the candidate's time, and nothing else.
func (c candidate) onlyTime() bool { return c.Gains.date >= onlyTimeBonus*otherYearShare }

// calibrated returns candidates as rows with scores that can be compared across queries. found.Confidence becomes the
// certainty of the best candidate, by itself or through its neighbors, which need not be candidates. If the query names
// only a time, the confidence is 1.
func calibrated(all []candidate, found *rank.Ranking) []rank.Scored {
	rows := make([]rank.Scored, len(all))
	for i, c := range all {
		rows[i] = rank.Scored{ID: c.Key, Score: c.Score, WordsRank: c.Own.WordsRank, MeaningRank: c.Own.MeaningRank}
	}
	sure := found.Confidence
	found.Confidence = 0
	for _, c := range all {
		found.Confidence = max(found.Confidence, found.Certainty(c.Own), sure*c.Gains.neighbors)
	}
	found.Confidence = min(found.Confidence, sure)
	if len(all) > 0 && all[0].onlyTime() {
		found.Confidence = 1
	}
	found.Calibrate(rows)
	return rows
}

func sortBest(all []candidate) {
	slices.SortFunc(all, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(b.Key, a.Key))
	})
}

// candidates reads the found messages, and the neighbors of the best and of the wanted ones. It reads each by its key
// or its position, for the reason given at rank.KeyedRow.
func (s *Store) candidates(ctx context.Context, f searchFilter, found []rank.Scored) ([]candidate, error) {
	keys := make([]int64, len(found))
	scores := make(map[int64]rank.Scored, len(found))
	for i, r := range found {
		keys[i], scores[r.ID] = r.ID, r
	}
	filter := f.wide().sql()
	wanted := strings.ReplaceAll(f.wanted(filter.Args), "$", "r")
	filter.Args["keys"], filter.Args["best"] = keys, maxSurrounded
	columns := `r.key, r.conversation_key, r.position, r.session, r.name,
		left(r.said, 120) AS opening, coalesce(right(rtrim(r.said), 1) = '?', false) AS asks, r.created_at,
		` + wanted + ` AS wanted`
	const row = `SELECT *, content #>> '{0,text}' AS said FROM messages m WHERE m.org = @org`
	all, err := db.All[candidate](ctx, s.db, `
		WITH found AS MATERIALIZED (
			SELECT `+columns+`, hit.place
			FROM unnest(@keys::bigint[]) WITH ORDINALITY AS hit (key, place) CROSS JOIN LATERAL (
				`+row+` AND m.key = hit.key OFFSET 0) r
		), best AS (
			(SELECT conversation_key, position FROM found ORDER BY place LIMIT @best)
			UNION
			(SELECT conversation_key, position FROM found WHERE wanted ORDER BY place LIMIT @best)
		), near AS (
			SELECT DISTINCT conversation_key, position + n AS position FROM best CROSS JOIN generate_series(-2, 2) AS n
		)
		SELECT key, conversation_key, position, session, name, opening, asks, created_at, wanted FROM found
		UNION ALL
		SELECT `+columns+`
		FROM near CROSS JOIN LATERAL (
			`+row+` AND m.conversation_key = near.conversation_key AND m.position = near.position OFFSET 0) r
		WHERE `+filter.Rows+` AND r.key <> ALL (@keys)`, filter.Args)
	for i := range all {
		all[i].Own = scores[all[i].Key]
	}
	return all, err
}

// addNeighbors adds to each candidate's score the shares of its neighbors' scores. If explain is set, it notes what
// each neighbor added.
func addNeighbors(all []candidate, explain bool) {
	known := make(map[place]*candidate, len(all))
	for i, c := range all {
		known[place{c.Conversation, c.Position}] = &all[i]
	}
	for i := range all {
		c := &all[i]
		gain := func(offset int, share float64) {
			other := known[place{c.Conversation, c.Position + offset}]
			if other == nil {
				return
			}
			if offset == -1 && other.Asks {
				share += answerShare
			}
			value := share * other.Own.Score
			c.Gains.neighbors += value
			if explain && value != 0 {
				c.neighbors = append(c.neighbors, neighbor{other.Key, value})
			}
		}
		for n, share := range neighborShares {
			gain(-n-1, share)
			gain(n+1, share)
		}
		c.Score = c.Own.Score + c.Gains.neighbors
	}
}

// addSessions adds to each candidate a share of its session's score, relative to the best score of a message by words.
func (s *Store) addSessions(ctx context.Context, org db.Org, all []candidate, found rank.Ranking) error {
	if found.BestWords == 0 {
		return nil
	}
	scores, err := s.scoreSessions(ctx, org, bestSessions(all), found.Query)
	for i, c := range all {
		all[i].Gains.session = found.ShareOfWords(sessionShare * scores[place{c.Conversation, c.Session}])
		all[i].Score += all[i].Gains.session
	}
	return err
}

// bestSessions returns the sessions of the first candidates, at most maxSessions.
func bestSessions(all []candidate) []place {
	var sessions []place
	seen := map[place]bool{}
	for _, c := range all {
		if session := (place{c.Conversation, c.Session}); !seen[session] && len(sessions) < maxSessions {
			seen[session] = true
			sessions = append(sessions, session)
		}
	}
	return sessions
}

// scoreSessions returns the BM25 score of each session, taken as one text.
func (s *Store) scoreSessions(ctx context.Context, org db.Org, sessions []place, q lexicon.Query) (
	map[place]float64, error) {
	conversations, firsts := make([]int64, len(sessions)), make([]int, len(sessions))
	for i, session := range sessions {
		conversations[i], firsts[i] = session.conversation, session.position
	}
	args := pgx.StrictNamedArgs{"org": org, "conversations": conversations, "sessions": firsts}
	terms := q.Rarest[:min(maxSessionTerms, len(q.Rarest))]
	sums := make([]string, len(terms))
	for i, t := range terms {
		name := fmt.Sprintf("t%d", i)
		args[name] = pgvector.NewSparseVectorFromMap(map[int32]float32{t: 1}, lexicon.Lexicon)
		sums[i] = "-sum(m.lex <#> @" + name + ")"
	}
	type row struct {
		Conversation int64     `db:"conversation_key"`
		Session      int       `db:"session"`
		Length       int64     `db:"length"`
		Counts       []float64 `db:"counts"`
	}
	rows, err := db.All[row](ctx, s.db, `
		SELECT m.conversation_key, m.session, sum(coalesce(m.length, m.tokens)) AS length,
		       ARRAY[`+strings.Join(sums, ", ")+`]::float8[] AS counts
		FROM unnest(@conversations::bigint[], @sessions::integer[]) AS wanted (conversation_key, session)
		JOIN messages m ON m.conversation_key = wanted.conversation_key AND m.session = wanted.session
		               AND m.position BETWEEN wanted.session AND wanted.session + `+fmt.Sprint(sessionMessages)+`
		WHERE m.org = @org AND m.lex IS NOT NULL
		GROUP BY m.conversation_key, m.session`, args)
	idf, scores := weights(q), make(map[place]float64, len(rows))
	for _, r := range rows {
		score := 0.0
		for i, t := range terms {
			score += idf[t] * lexicon.Saturated(r.Counts[i], float64(r.Length)*termsPerLength)
		}
		scores[place{r.Conversation, r.Session}] = score
	}
	return scores, err
}

func weights(q lexicon.Query) map[int32]float64 {
	all := make(map[int32]float64, len(q.Rarest))
	values := q.Vector.Values()
	for i, t := range q.Vector.Indices() {
		all[t] = float64(values[i])
	}
	return all
}

// speakerPrefix matches the name at the beginning of a text such as "Ann: hello".
var speakerPrefix = regexp.MustCompile(`^([\pL][\pL\pN_.'-]{1,30}(?: [\pL][\pL\pN_.'-]{1,30})?): `)

// speaker returns who said the message, in lower case; empty if unknown.
func (c candidate) speaker() string {
	if c.Name != nil {
		return strings.ToLower(*c.Name)
	}
	if c.Opening != nil {
		if found := speakerPrefix.FindStringSubmatch(*c.Opening); found != nil {
			return strings.ToLower(found[1])
		}
	}
	return ""
}

var word = regexp.MustCompile(`[\pL\pN_]+`)

// namedIn returns a function that reports whether a query has the first name of a speaker.
func namedIn(query string) func(speaker string) bool {
	queryWords := map[string]bool{}
	for _, w := range word.FindAllString(strings.ToLower(query), -1) {
		queryWords[w] = true
	}
	return func(speaker string) bool {
		first := word.FindString(speaker)
		return len(first) > 1 && queryWords[first]
	}
}

// addParticipants adds a bonus to candidates if the query names their speaker, unless the query names every speaker.
func addParticipants(all []candidate, query string) {
	named := namedIn(query)
	distinguishes := slices.ContainsFunc(all, func(c candidate) bool {
		speaker := c.speaker()
		return speaker != "" && !named(speaker)
	})
	for i := range all {
		if distinguishes && named(all[i].speaker()) {
			all[i].Gains.participant = participantBonus
			all[i].Score += participantBonus
		}
	}
}

func addDates(all []candidate, periods []period) {
	for i := range all {
		bonus := 0.0
		for _, p := range periods {
			bonus = max(bonus, p.bonusAt(all[i].CreatedAt.In(p.from.Location())))
		}
		all[i].Gains.date = bonus
		all[i].Score += bonus
	}
}

// addPeriods adds messages of the times that the query names, whatever they say.
func (s *Store) addPeriods(ctx context.Context, f searchFilter, found []rank.Scored) ([]rank.Scored, error) {
	known := make(map[int64]bool, len(found))
	for _, r := range found {
		known[r.ID] = true
	}
	for _, p := range f.searchedPeriods() {
		filter := f.during(p).sql()
		keys, err := db.All[int64](ctx, s.db, `
			SELECT r.key FROM messages r
			WHERE `+filter.Rows+`
			ORDER BY r.created_at, r.key
			LIMIT `+fmt.Sprint(p.most()), filter.Args)
		if err != nil {
			return nil, err
		}
		for _, key := range keys {
			if !known[key] {
				known[key] = true
				found = append(found, rank.Scored{ID: key})
			}
		}
	}
	return found, nil
}
