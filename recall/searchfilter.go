package recall

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed/lexicon"
	"github.com/loci-memory/loci/embed/rank"
)

// searchFilter selects the messages that a search may see: the messages of a conversation, an agent or the
// organization, narrowed by the query.
type searchFilter struct {
	org          db.Org
	agent        int64   // 0: all agents
	conversation int64   // 0: all conversations of the agent
	rows         int     // an upper bound of the number of messages
	few          []int64 // the conversations that are searched, if the scope of users leaves few; nil: not listed
	periods      []period
	after        int64   // key of the message after which the page begins; 0 for the first page
	guessed      bool    // q.Text is another spelling of the query
	deleted      []int64 // conversations with hidden messages
	copies       []int64 // conversations that begin with copied messages to leave out
	copiedTo     []int   // for each of copies, the position of the last message to leave out
	q            Query
	narrowed     narrowed
	passages     map[int64]*foundPassage // by the keys of long messages; of the best hits

	// The model already sees the messages of conversation visibleIn (0: none) from position visibleFrom on, except those
	// at unshown, and those at visibleKept.
	visibleIn   int64
	visibleFrom int
	visibleKept []int
	unshown     []int
}

// searchFilter returns the filter for a query. ErrNotFound if the agent or the conversation does not exist.
func (s *Store) searchFilter(ctx context.Context, org db.Org, q Query) (searchFilter, error) {
	periods, err := q.periods(ctx)
	if err != nil {
		return searchFilter{}, err
	}
	f := searchFilter{org: org, q: q, periods: periods}
	if q.AgentID != "" {
		agent, err := db.AgentKey(ctx, s.db, org, q.AgentID)
		if err != nil {
			return searchFilter{}, err
		}
		f.agent = agent
	}
	if q.Conversation != "" {
		c, err := s.ConversationIn(ctx, org, q.AgentID, Reach{q.Conversation, q.Users})
		if err != nil {
			return searchFilter{}, err
		}
		f.agent, f.conversation = c.AgentKey, c.Key
	}
	if f.narrowed, err = s.narrowed(ctx, org, f.agent, q); err != nil {
		return searchFilter{}, err
	}
	asking, err := s.asking(ctx, f)
	if err != nil {
		return searchFilter{}, err
	}
	if f.agent != 0 {
		exclude := s.excludeTurn
		if q.Unseen {
			exclude = s.excludeVisible
		}
		if err := exclude(ctx, &f, asking); err != nil {
			return searchFilter{}, err
		}
	}
	if f.conversation == 0 {
		l, err := s.searchedLineage(ctx, org, f, asking)
		if err != nil {
			return searchFilter{}, err
		}
		f.copies, f.copiedTo = l.repeats(asking)
	}
	return f, s.countMessages(ctx, &f, asking)
}

// asking returns the key of the conversation in which the model asks; 0 if the query names none.
func (s *Store) asking(ctx context.Context, f searchFilter) (int64, error) {
	if f.conversation != 0 || f.q.Asking == "" || f.agent == 0 {
		return f.conversation, nil
	}
	c, err := s.Conversation(ctx, f.org, f.q.AgentID, f.q.Asking)
	return c.Key, err
}

// excludeVisible leaves out messages that the model sees in a conversation (0: the default one), that is those that no
// summary replaces. If the conversation has no summary, nothing is left out unless a call in its log asks, because it
// is unknown how much of the conversation another model sees.
func (s *Store) excludeVisible(ctx context.Context, f *searchFilter, conversation int64) error {
	type row struct {
		Key          int64 `db:"key"`
		FirstVisible int   `db:"first_visible"`
		Kept         []int `db:"kept"`
		Unshown      []int `db:"unshown"`
	}
	rows, err := db.All[row](ctx, s.db, `
		SELECT key, first_visible, kept, ARRAY(
			SELECT m.position FROM messages m
			WHERE m.org = $1 AND m.conversation_key = c.key AND m.position >= c.first_visible AND (m.is_err
			   OR m.refused IS NOT NULL
			   OR m.role = 'tool' AND EXISTS (SELECT FROM json_array_elements(m.content) AS part WHERE `+isOrphan+`))
		) AS unshown
		FROM conversations c
		WHERE org = $1 AND agent_key = $2 AND CASE WHEN $3 = 0 THEN is_default ELSE key = $3 END
		  AND (first_visible > 1 OR $4 > 0)`, f.org, f.agent, conversation, f.q.CalledAt)
	for _, r := range rows {
		f.visibleIn, f.visibleFrom, f.visibleKept, f.unshown = r.Key, r.FirstVisible, r.Kept, r.Unshown
	}
	return err
}

// excludeTurn leaves out the turn in which a call asks, which begins with the first of the user's newest messages
// before the call.
func (s *Store) excludeTurn(ctx context.Context, f *searchFilter, conversation int64) error {
	if f.q.CalledAt == 0 {
		return nil
	}
	type row struct {
		Key  int64 `db:"key"`
		From int   `db:"from"`
	}
	rows, err := db.All[row](ctx, s.db, `
		SELECT c.key, coalesce((
			SELECT max(m.position) FROM messages m
			WHERE m.org = $1 AND m.conversation_key = c.key AND m.role <> 'user' AND m.position < (
				SELECT max(u.position) FROM messages u
				WHERE u.org = $1 AND u.conversation_key = c.key AND u.role = 'user' AND u.position <= $4)), 0) + 1 AS "from"
		FROM conversations c
		WHERE c.org = $1 AND c.agent_key = $2 AND CASE WHEN $3 = 0 THEN c.is_default ELSE c.key = $3 END`,
		f.org, f.agent, conversation, f.q.CalledAt)
	for _, r := range rows {
		f.visibleIn, f.visibleFrom, f.visibleKept, f.unshown = r.Key, r.From, []int{}, []int{}
	}
	return err
}

// countMessages counts the messages that a search reads, and lists the conversations that it does not read: deleted
// ones and, unless one conversation is searched, the forks in which sub-agents work. The model in such a fork can
// search its own fork.
func (s *Store) countMessages(ctx context.Context, f *searchFilter, asking int64) error {
	type row struct {
		Rows    int     `db:"rows"`
		Deleted []int64 `db:"deleted"`
		Few     []int64 `db:"few"`
		Users   bool    `db:"users"` // a conversation is with a user
	}
	args := pgx.StrictNamedArgs{"org": f.org, "agent": f.agent, "conversation": f.conversation,
		"with_reset": f.q.WithReset, "asking": asking, "most": maxListed}
	few, ofUsers, visible, users := `NULL::bigint[]`, `false`, ``, `true`
	if f.narrowsUsers() {
		few = `CASE WHEN count(*) FILTER (WHERE NOT hidden) <= @most THEN
			coalesce(array_agg(key ORDER BY key) FILTER (WHERE NOT hidden), '{}') END`
		ofUsers = `EXISTS (
			SELECT FROM conversation_identities x WHERE x.org = @org AND (@agent = 0 OR x.agent_key = @agent))`
		users = f.q.Users.Where(`x.identity_key`, args)
		visible = `LEFT JOIN conversation_identities x
			ON x.org = @org AND x.agent_key = c.agent_key AND x.conversation_key = c.key`
	}
	r, err := db.One[row](ctx, s.db, `
		SELECT coalesce(sum(messages) FILTER (WHERE NOT hidden), 0)::bigint AS rows,
		       coalesce(array_agg(key ORDER BY key) FILTER (WHERE hidden), '{}') AS deleted, `+few+` AS few,
		       `+ofUsers+` AS users
		FROM (
			SELECT c.key, c.messages, c.deleted_at IS NOT NULL AND NOT (@with_reset AND c.reset_at IS NOT NULL)
			       OR c.delegated AND @conversation = 0 AND c.key <> @asking AS hidden
			FROM conversations c `+visible+`
			WHERE c.org = @org AND (@agent = 0 OR c.agent_key = @agent) AND (@conversation = 0 OR c.key = @conversation)
			  AND @most > 0 AND `+users+`
		) c`, args)
	f.rows, f.deleted, f.few = r.Rows, r.Deleted, r.Few
	if f.narrowsUsers() && !r.Users { // all messages are nobody's
		f.few, f.q.Users = nil, db.AllUsers()
	}
	return err
}

// maxListed is how many conversations a search lists by their keys.
const maxListed = 1_000

// narrowsUsers reports whether the scope of users leaves out conversations of a search of an agent or the organization.
func (f searchFilter) narrowsUsers() bool { return f.conversation == 0 && !f.q.Users.All() }

// narrows reports whether the query leaves out messages by their roles or times.
func (f searchFilter) narrows() bool { return len(f.q.Roles) > 0 || f.q.Start != nil || f.q.End != nil }

// wide returns the filter without the query's roles and times. The messages that these exclude still add to the scores
// of their neighbors.
func (f searchFilter) wide() searchFilter {
	f.q.Roles, f.q.Start, f.q.End = nil, nil, nil
	return f
}

func (f searchFilter) filters() []rank.Filter {
	all := []rank.Filter{f.sql()}
	if f.narrows() {
		all = append(all, f.wide().sql())
	}
	for _, p := range f.searchedPeriods() {
		all = append(all, f.during(p).sql())
	}
	return all
}

// maxPeriods is how many of a query's times are searched separately.
const maxPeriods = 4

// searchedPeriods returns the times that find messages whatever these say: times of at most a week, and all times if
// the query asks for nothing else.
func (f searchFilter) searchedPeriods() (all []period) {
	for _, p := range f.periods {
		if p.short() || p.bonus == onlyTimeBonus {
			all = append(all, p.years()...)
		}
	}
	return all[:min(len(all), maxPeriods)]
}

// during returns the filter for one time alone.
func (f searchFilter) during(p period) searchFilter {
	start, end := p.from, p.to.Add(-db.Resolution)
	if f.q.Start != nil && f.q.Start.After(start) {
		start = *f.q.Start
	}
	if f.q.End != nil && f.q.End.Before(end) {
		end = *f.q.End
	}
	f.q.Start, f.q.End = &start, &end
	return f
}

func (f searchFilter) sql() rank.Filter {
	const hasWords = `r.lex IS NOT NULL AND `
	rows, args := f.condition()
	return rank.Filter{
		Rows:    hasWords + strings.ReplaceAll(rows, "$", "r") + f.narrowed.where("r", "r.key", args),
		Vectors: strings.ReplaceAll(rows, "$", "v") + f.narrowed.where("v", "v.message_key", args),
		Args:    args,
	}
}

// condition returns a condition on rows of messages or of their vectors, and its arguments. $ stands for the row.
func (f searchFilter) condition() (string, pgx.StrictNamedArgs) {
	where := `$.org = @org AND $.conversation_key <> ALL (@deleted)`
	args := pgx.StrictNamedArgs{"org": f.org, "deleted": f.deleted}
	add := func(condition string, name string, value any) {
		where += ` AND ` + condition
		args[name] = value
	}
	if f.agent != 0 {
		add(`$.agent_key = @agent`, "agent", f.agent)
	} else {
		where += ` AND $.agent_key IN (SELECT key FROM agents WHERE org = @org)`
	}
	if f.conversation != 0 {
		add(`$.conversation_key = @conversation`, "conversation", f.conversation)
	}
	where += f.ofUsers(args)
	if f.visibleIn != 0 {
		add(`NOT ($.conversation_key = @visible_in AND ($.position >= @visible_from AND $.position <> ALL (@unshown)
			OR $.position = ANY (@visible_kept)))`, "visible_in", f.visibleIn)
		args["visible_from"], args["visible_kept"], args["unshown"] = f.visibleFrom, f.visibleKept, f.unshown
	}
	if len(f.copies) > 0 {
		add(`NOT EXISTS (
			SELECT FROM unnest(@copies::bigint[], @copied_to::integer[]) AS copied (key, last)
			WHERE copied.key = $.conversation_key AND $.position <= copied.last)`, "copies", f.copies)
		args["copied_to"] = f.copiedTo
	}
	if len(f.q.Roles) == 0 {
		where += ` AND $.role <> 'summary'` // the log has everything that a summary says
	}
	return where + ` AND ` + f.wanted(args), args
}

// ofUsers returns a condition that leaves out the messages of other users, beginning with AND, and adds its argument to
// args. It is empty if there is nothing to leave out. $ stands for the row.
func (f searchFilter) ofUsers(args pgx.StrictNamedArgs) string {
	switch {
	case f.few != nil:
		args["few_conversations"] = f.few
		return ` AND $.conversation_key = ANY (@few_conversations)`
	case f.narrowsUsers():
		args["scope_user"] = f.q.Users.User()
		return ` AND NOT EXISTS (SELECT FROM conversation_identities x
			WHERE x.org = @org AND x.agent_key = $.agent_key AND x.conversation_key = $.conversation_key
			  AND x.identity_key <> @scope_user)`
	}
	return ""
}

// keys returns rank.Filter.Few for a filter that lists the conversations.
func (s *Store) keys(ctx context.Context, f rank.Filter) func(most int) ([]int64, error) {
	return func(most int) ([]int64, error) {
		args := maps.Clone(f.Args)
		args["most"] = most + 1
		keys, err := db.All[int64](ctx, s.db, `SELECT r.key FROM messages r WHERE `+f.Rows+` LIMIT @most`, args)
		if len(keys) > most {
			return nil, err
		}
		return keys, err
	}
}

// wanted returns the condition from the query's roles and times, and adds its arguments to args. $ stands for the row.
func (f searchFilter) wanted(args pgx.StrictNamedArgs) string {
	where := `true`
	if len(f.q.Roles) > 0 {
		where += ` AND $.role = ANY (@roles)`
		args["roles"] = f.q.Roles
	}
	if f.q.Start != nil {
		where += ` AND $.created_at >= @start`
		args["start"] = *f.q.Start
	}
	if f.q.End != nil {
		where += ` AND $.created_at <= @end`
		args["end"] = *f.q.End
	}
	return where
}

// statisticsScope names the messages that word statistics are counted over, whatever else the query filters by.
func (f searchFilter) statisticsScope() string {
	return fmt.Sprint(f.org, f.agent, f.conversation, f.q.WithReset, f.q.Users)
}

// sampledPassages is how many passages of a long message are sampled, spread evenly over it.
const sampledPassages = 8

// sample reads the terms of up to lexicon.SampleRows messages, of long ones by passages, spread evenly over the
// conversation, the agent or the organization.
func (s *Store) sample(ctx context.Context, f searchFilter) (*lexicon.IDF, error) {
	if f.few != nil {
		return s.sampleFew(ctx, f)
	}
	place, rows := "key", `org = @org`
	ends := `SELECT min(key) AS first, max(key) AS last FROM messages WHERE org = @org`
	args := pgx.StrictNamedArgs{"org": f.org, "n": int64(lexicon.SampleRows)}
	users := strings.ReplaceAll(f.ofUsers(args), "$", "messages")
	switch {
	case f.conversation != 0:
		place, rows, args["key"] = "position", `org = @org AND conversation_key = @key`, f.conversation
		ends = `SELECT 1::bigint AS first, messages::bigint AS last FROM conversations WHERE org = @org AND key = @key`
	case f.agent != 0:
		place, rows, args["key"] = "seq", `org = @org AND agent_key = @key`, f.agent
		ends = `SELECT min(seq) AS first, max(seq) AS last FROM messages WHERE org = @org AND agent_key = @key`
	}
	type row struct {
		Terms []int64 `db:"terms"`
		More  int     `db:"more"`
	}
	args["passages"] = sampledPassages
	sampled, err := db.All[row](ctx, s.db, `
		WITH ends AS (`+ends+`), places AS (
			SELECT first + (last - first + 1) * n / least(@n, last - first + 1) AS place
			FROM ends CROSS JOIN LATERAL generate_series(0, least(@n, last - first + 1) - 1) AS n
		), drawn AS (
			SELECT DISTINCT m.key
			FROM places CROSS JOIN LATERAL (
				SELECT key FROM messages WHERE `+rows+users+` AND `+place+` >= places.place
				ORDER BY `+place+` LIMIT 1
			) m
		)
		SELECT coalesce(p.terms, m.terms) AS terms, coalesce(p.more, 0) AS more
		FROM drawn JOIN messages m USING (key) LEFT JOIN LATERAL (
			SELECT p.terms, CASE WHEN place = 1 THEN passages - least(passages, @passages) ELSE 0 END AS more
			FROM (
				SELECT p.key, p.terms, row_number() OVER (ORDER BY p.key) AS place, count(*) OVER () AS passages
				FROM message_pieces p WHERE p.org = @org AND p.message_key = m.key
			) p
			WHERE (place - 1) * @passages % greatest(passages, @passages) < @passages
		) p ON true
		WHERE m.org = @org AND m.terms IS NOT NULL
		ORDER BY m.key, p.terms`, args)
	total, terms := f.rows, make([][]int64, len(sampled))
	for i, r := range sampled {
		terms[i] = r.Terms
		total += r.More
	}
	return lexicon.NewIDF(terms, total), err
}

// sampleFew is sample for listed conversations.
func (s *Store) sampleFew(ctx context.Context, f searchFilter) (*lexicon.IDF, error) {
	terms, err := db.All[[]int64](ctx, s.db, `
		SELECT m.terms FROM messages m
		WHERE m.org = $1 AND m.conversation_key = ANY ($2) AND m.terms IS NOT NULL
		  AND m.key % greatest($3::bigint / $4::bigint, 1) = 0
		ORDER BY m.key
		LIMIT $4`, f.org, f.few, f.rows, lexicon.SampleRows)
	return lexicon.NewIDF(terms, f.rows), err
}

// searchedLineage is lineageOf for a search of an agent or of the organization. Forks in which sub-agents work count as
// gone, except the fork in which the asking model works.
func (s *Store) searchedLineage(ctx context.Context, org db.Org, f searchFilter, asking int64) (lineage, error) {
	l, err := s.lineageOf(ctx, org, f.agent, f.q.WithReset)
	if err == nil {
		err = s.hideOthers(ctx, org, l, f.q.Users)
	}
	for key, b := range l {
		b.Gone = b.Gone || b.Delegated && key != asking
		l[key] = b
	}
	return l, err
}
