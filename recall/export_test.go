package recall

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// WordsAlone ranks as Search does, but only by each message's own words, and returns the ids of the best.
func (s *Store) WordsAlone(ctx context.Context, org db.Org, q Query) ([]string, error) {
	q.Mode = ByWords
	f, err := s.searchFilter(ctx, org, q)
	if err != nil {
		return nil, err
	}
	ranking, err := s.rank(ctx, f)
	if err != nil {
		return nil, err
	}
	hits, err := s.hits(ctx, f, ranking.Rows, nil)
	ids := make([]string, len(hits))
	for i, h := range hits {
		ids[i] = h.ID
	}
	return ids, err
}

// Periods returns the times that a text names, as first and last days. An asterisk marks a yearly time.
func Periods(ctx context.Context, text string, now time.Time) (all []string, err error) {
	periods, err := periodsIn(ctx, text, now)
	for _, p := range periods {
		days := p.from.Format(time.DateOnly)
		if last := p.to.AddDate(0, 0, -1).Format(time.DateOnly); last != days {
			days += " " + last
		}
		if p.yearly {
			days += "*"
		}
		all = append(all, days)
	}
	return all, err
}

// SetIndexRows sets up to how many rows a search reads all of them.
func (s *Store) SetIndexRows(rows int) { s.search.IndexRows = rows }

// SetSettle sets how long a job waits for more messages.
func (s *Store) SetSettle(d time.Duration) { s.settle = d }

// EmbedOnce works as a job does, until nothing is left or the endpoint fails.
func EmbedOnce(s *Store, ctx context.Context, org db.Org, agentID string) error {
	agent, err := db.AgentKey(ctx, s.db, org, agentID)
	if err != nil {
		return err
	}
	q := s.Queue()
	space, _ := s.o.Endpoint.Space()
	for more := true; more && err == nil; {
		more, err = q.Once(ctx, job{Org: org, Owner: agent}, space)
	}
	return err
}

// Waiting returns how many agents of an organization have messages without a vector.
func Waiting(ctx context.Context, s *Store, org db.Org) (int, error) {
	space, _ := s.o.Endpoint.Space()
	return db.One[int](ctx, s.db, `SELECT count(*) FROM (`+s.Queue().Waiting+`) w WHERE w.org = @org`,
		pgx.StrictNamedArgs{"org": org, "space": space.ID})
}

// ViewPlan returns Postgres' plan for reading the view of an agent's default conversation.
func (s *Store) ViewPlan(ctx context.Context, org db.Org, agentID string) (string, error) {
	c, err := s.Conversation(ctx, org, agentID, DefaultConversation)
	if err != nil {
		return "", err
	}
	lines, err := db.All[string](ctx, s.db, "EXPLAIN "+viewSQL,
		pgx.StrictNamedArgs{"org": org, "key": c.Key, "first": c.FirstVisible, "last": nil, "most": MaxWindow})
	return strings.Join(lines, "\n"), err
}

// ViewOf returns the View of a stored conversation.
func (s *Store) ViewOf(ctx context.Context, org db.Org, agentID, conversation string) ([]Message, error) {
	c, err := s.Conversation(ctx, org, agentID, conversation)
	if err != nil {
		return nil, err
	}
	return s.View(ctx, org, c)
}

var Snippet = snippet

type Branch = branch

// Repeats returns what repeats does for a lineage of these conversations.
func Repeats(branches []Branch, first int64) ([]int64, []int) {
	l := lineage{}
	for _, b := range branches {
		l[b.Key] = b
	}
	return l.repeats(first)
}

// SetWordRows sets from how many messages on an agent's words are indexed, and how many more make a new segment.
// Segments wait for the transactions of other tests.
func (s *Store) SetWordRows(first, more int) {
	s.search.Words.FirstRows, s.search.Words.NewRows, s.search.Words.Wait = first, more, time.Minute
}

// SetWide sets from how many messages on a search reads the keys of those that pass its filter first.
func (s *Store) SetWide(rows int) { s.search.WideRows = rows }
