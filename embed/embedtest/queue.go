package embedtest

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"

	"github.com/loci-memory/loci/db/queue"
	"github.com/loci-memory/loci/embed/endpoint"
)

// Queue is the queue of a memory, an *endpoint.Queue.
type Queue interface {
	Work(workers *river.Workers)
	Queues() map[string]river.QueueConfig
	Call(ctx context.Context, jobs *river.Client[pgx.Tx]) (int, error)
	Backfill(ctx context.Context, idle time.Duration) (owners int, err error)
	ClearSpaces(ctx context.Context, pool *pgxpool.Pool) (rows int, err error)
}

// Memory is a memory with the queue under test. It has one owner.
type Memory struct {
	Pool    *pgxpool.Pool
	Vectors string // name of its table of vectors

	// Connect gives the memory an endpoint, as a server's start does. settle is how long a job waits before it starts.
	Connect func(e *Endpoint, settle time.Duration)
	// Queue returns the memory's queue since the last Connect.
	Queue func() Queue
	// Write stores two rows per call, for the given number of calls.
	Write func(calls int)
	// Found reports whether words find the last row.
	Found func() bool
	// Status returns the progress of the owner's vectors.
	Status func() *endpoint.Status
	// Settled waits until all rows have vectors.
	Settled func()
}

func (m *Memory) count(t *testing.T, sql string) (n int) {
	t.Helper()
	if err := m.Pool.QueryRow(t.Context(), `SELECT count(*) FROM `+sql).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func (m *Memory) exec(t *testing.T, sql string) {
	t.Helper()
	if _, err := m.Pool.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

func (m *Memory) work(t *testing.T) (stop func()) {
	t.Helper()
	return Work(t, m.Pool, m.Queue(), m.Queue().Queues())
}

// TestQueue tests a queue. start makes a memory with it.
func TestQueue(t *testing.T, start func(t *testing.T) *Memory) {
	for name, test := range map[string]func(*testing.T, *Memory){
		"a burst of writes is one job":         oneJob,
		"a server that ended leaves its work":  serverEnded,
		"another model starts again":           anotherModel,
		"vectors of unused models are cleared": unusedModels,
		"rows outlive an endpoint that fails":  outlive,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, start(t))
		})
	}
}

// A burst of writes makes one job and few requests. The job starts only when no more writes are expected. Until then
// words find all rows.
func oneJob(t *testing.T, m *Memory) {
	e := New(t, 8)
	m.Connect(e, time.Hour)
	jobs := Jobs(t, m.Pool, river.Config{})
	for range 50 {
		m.Write(1)
		if _, err := m.Queue().Call(t.Context(), jobs); err != nil {
			t.Fatal(err)
		}
	}
	if n := m.count(t, `river_job`); n != 1 {
		t.Errorf("50 writes make %d jobs", n)
	}
	if m.count(t, `river_job WHERE state = 'available' AND scheduled_at > now() + interval '50 minutes'`) != 1 {
		t.Error("the job does not wait for more rows")
	}
	if got := m.Status(); got == nil || got.Pending < 100 || got.Refused != 0 || got.Error != nil {
		t.Errorf("the status is %+v, want at least 100 rows pending", got)
	}
	if !m.Found() {
		t.Error("a row is not found by its words before it has a vector")
	}
	m.exec(t, `UPDATE river_job SET scheduled_at = now()`)
	m.work(t)
	m.Settled()
	if jobs, requests := m.count(t, `river_job`), e.Requests.Load(); jobs != 1 || requests > 12 {
		t.Errorf("100 rows take %d jobs and %d requests", jobs, requests)
	}
	if got := m.Status(); *got != (endpoint.Status{}) {
		t.Errorf("the status is %+v, want an empty one", got)
	}
}

// A server that stops or is killed leaves its unfinished work to the next server.
func serverEnded(t *testing.T, m *Memory) {
	e := New(t, 8)
	m.Connect(e, 0)
	m.Write(100)
	asked := make(chan struct{})
	var once sync.Once
	hangs := Fault(func(_ http.ResponseWriter, r *http.Request, _ []string) bool {
		if e.Requests.Load() < 2 {
			return false
		}
		once.Do(func() { close(asked) })
		<-r.Context().Done()
		return true
	})
	e.Fault.Store(&hangs)
	stop := m.work(t)
	select {
	case <-asked:
	case <-time.After(Patience):
		t.Fatal("the endpoint is not asked")
	}
	stop()
	e.Fault.Store(nil)
	m.exec(t, `
		UPDATE river_job SET state = 'running', attempted_by = '{killed}', attempted_at = now(), finalized_at = NULL`)
	if n, err := m.Queue().Call(t.Context(), Jobs(t, m.Pool, river.Config{})); n != 0 || err != nil {
		t.Errorf("beside a job in hand %d are queued (%v)", n, err)
	}
	if n, err := queue.GiveBack(t.Context(), m.Pool); n != 1 || err != nil {
		t.Errorf("%d jobs are given back (%v), want 1", n, err)
	}
	m.Connect(e, 0)
	m.work(t)
	m.Settled()
}

// Another model's vectors are stored beside the old ones. A server that returns to the old model finds the old vectors.
func anotherModel(t *testing.T, m *Memory) {
	first, second := New(t, 8), New(t, 16)
	m.Connect(first, 0)
	m.Write(20)
	stop := m.work(t)
	m.Settled()
	stop()
	old := m.Queue()
	m.exec(t, `UPDATE embedding_spaces SET used_at = now()`)
	m.Connect(second, 0)
	stop = m.work(t)
	m.Settled()
	stop()
	if n := m.count(t, m.Vectors); n != 80 {
		t.Errorf("40 rows have %d vectors in two spaces", n)
	}
	if n, err := old.Backfill(t.Context(), endpoint.IdleSpace); n != 0 || err != nil {
		t.Errorf("%d owners are taken from a server that runs (%v)", n, err)
	}
	before := first.Requests.Load()
	m.Connect(first, 0)
	m.work(t)
	m.Settled()
	if n := first.Requests.Load(); n != before {
		t.Errorf("the return to the first model takes %d requests", n-before)
	}
}

// If no server has used a model for a week, its vectors are deleted. Rows with no other vectors are embedded again.
func unusedModels(t *testing.T, m *Memory) {
	first := New(t, 8)
	for _, e := range []*Endpoint{first, New(t, 16)} {
		m.Connect(e, 0)
		m.Write(5)
		stop := m.work(t)
		m.Settled()
		stop()
	}
	for _, c := range []struct {
		age  string
		want int
	}{{"6 days", 0}, {"8 days", 10}} {
		m.exec(t, `UPDATE embedding_spaces SET used_at = now() - interval '`+c.age+`'`)
		if n, err := m.Queue().ClearSpaces(t.Context(), m.Pool); n != c.want || err != nil {
			t.Errorf("after %s %d vectors are deleted (%v), want %d", c.age, n, err, c.want)
		}
	}
	m.Settled()
	m.Connect(first, 0)
	m.work(t)
	m.Settled()
}

// While the endpoint fails, rows wait, the status shows the reason, and words find the rows.
func outlive(t *testing.T, m *Memory) {
	e := New(t, 8)
	m.Connect(e, 0)
	m.Write(1)
	m.work(t)
	m.Settled()
	for _, c := range []struct {
		endpoint string
		fault    Fault
		reason   string
	}{
		{"is down", Answer(503, `{"error": {"message": "down for repairs"}}`), "fails (status 503)"},
		{"breaks", Answer(500, `{"error": {"message": "out of memory"}}`), "fails (status 500)"},
		{"is at its limit", Answer(429, `{}`, "Retry-After-Ms", "20"), "takes no more requests for now"},
		{"answers with vectors of another length", Vectors(5, 0), "a vector of 5 numbers after ones of 8"},
		{"answers with garbage", Answer(200, `<html>`), "something else than embeddings"},
		{"answers with zeros", Zeros(8), "a vector of zeros"},
		{"refuses all", Answer(400, `{"error": {"message": "no model"}}`), "every text"},
	} {
		vectors, before := m.count(t, m.Vectors), e.Requests.Load()
		e.Fault.Store(&c.fault)
		m.Write(5)
		Eventually(t, "the endpoint "+c.endpoint+": the reason is in the status, and it is asked again", func() bool {
			got := m.Status()
			return e.Requests.Load() > before+1 && got.Pending == 10 && got.Error != nil &&
				strings.Contains(*got.Error, c.reason)
		})
		if n := m.count(t, m.Vectors); n != vectors {
			t.Errorf("the endpoint %s: meanwhile %d vectors are stored", c.endpoint, n-vectors)
		}
		if !m.Found() {
			t.Errorf("the endpoint %s: meanwhile a row is not found by its words", c.endpoint)
		}
		m.Write(1)
		e.Fault.Store(nil)
		m.Settled()
		if got := m.Status(); *got != (endpoint.Status{}) {
			t.Errorf("the endpoint %s: the status is %+v afterwards, want an empty one", c.endpoint, got)
		}
	}
}
