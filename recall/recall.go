// Package recall keeps the log of agents' conversations, which is never rewritten, and searches it. It owns
// conversations, messages, tool calls, the tool results too long for the log, and the messages' vectors. It knows an
// agent only by its id.
//
// Each file uses those that are named before it:
//   - the store, and what it redacts: recall.go redactor.go
//   - messages and their parts: envelope.go part.go thought.go failedresult.go resultcontent.go clean.go
//     refusalstate.go message.go
//   - conversations, and what a model sees of them: contextview.go conversation.go lineage.go messages.go visible.go
//   - what is to append: draft.go toolset.go longresult.go searchtext.go entry.go conversationend.go
//   - the append: appending.go toolcall.go secondresult.go restored.go otid.go failedturn.go unconfirmed.go
//     append.go redaction.go
//   - what appends: answercall.go changeview.go systemprompt.go newconversation.go conversations.go
//     cancelchildren.go conversationupdate.go
//   - what is read by its place: expandable.go wholeresult.go neighbors.go seqrange.go logslice.go expansion.go
//     expand.go expandpage.go repeatedmessages.go
//   - search: timerange.go gains.go querydates.go query.go fields.go snippet.go passages.go searchfilter.go wishes.go
//     rank.go explain.go search.go
//   - prompts that a provider refused: turns.go refusalreport.go suspect.go trial.go refusal.go
//   - what a program sends again through the gateway: note.go
//   - copies of conversations: fork.go portable.go
//   - work in the background: sharedprefix.go embedding.go backlog.go reembed.go reweigh.go
//   - erasures: erase.go keptresult.go cleanup.go
package recall

import (
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed/endpoint"
	"github.com/loci-memory/loci/embed/rank"
	"github.com/loci-memory/loci/embed/wordindex"
)

// Options configure a Store.
type Options struct {
	Entropy  bool               // redact texts of high entropy too, which includes hashes and ids
	Endpoint *endpoint.Endpoint // ranks by meaning; nil ranks by words alone
	Reranker *rank.Reranker     // orders the best hits of a search; nil leaves their order
}

// Store keeps conversations in Postgres.
type Store struct {
	db        db.DB
	search    *rank.Search
	redactors *sync.Map  // *redact.Redactor by organization
	texts     *db.Shares // shares the memory for texts that are being expanded, in bytes
	o         Options
	settle    time.Duration // delay between an append and the job that embeds it
}

// A text to expand may be far larger than what is shown of it. Texts that are read at the same time share a limit. They
// take about three times their size in memory.
const (
	maxWholeBytes = 16 << 20 // for a text that is read whole
	freeTextBytes = 1 << 20  // smaller texts do not count
	allTextBytes  = 32 << 20 // for all texts that are being read
)

// New returns a store on d.
func New(d db.DB, o Options) *Store {
	search := rank.NewSearch(o.Endpoint, "searched_messages", "message_vectors", "message_key")
	search.Reranker = o.Reranker
	search.Passages = true
	search.Words = wordindex.New("messages", "searched_messages", "agent_key", "seq")
	return &Store{db: d, search: search, redactors: &sync.Map{},
		texts: db.NewShares(allTextBytes, allTextBytes-maxWholeBytes), o: o, settle: endpoint.Settle}
}

// With returns the store for use in transaction tx.
func (s *Store) With(tx pgx.Tx) *Store {
	in := *s
	in.db = tx
	return &in
}

func isNotFound(err error) bool { return errors.Is(err, db.ErrNotFound) }
