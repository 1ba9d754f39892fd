package metrics

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/loci-memory/loci/db"
)

// readTimeout bounds the statements of one reading of the metrics.
const readTimeout = 5 * time.Second

// countedFor is how long numbers that the database counts are handed out before they are counted again.
const countedFor = 10 * time.Second

// Database adds the metrics that are read from the database and its pool. While the database does not answer,
// loci_database_up is 0 and those that are counted there are missing.
func (m *Metrics) Database(pool *pgxpool.Pool) { m.registry.MustRegister(&database{pool: pool}) }

// database collects what the database knows.
type database struct {
	pool *pgxpool.Pool

	mu     sync.Mutex
	counts []count
	at     time.Time // when they were counted
}

// count is one number of the database.
type count struct {
	Of    string  `db:"of"`
	Name  string  `db:"name"`
	State string  `db:"state"`
	Value float64 `db:"value"`
}

// counted returns the numbers of the database, which are counted for one reader at a time.
func (c *database) counted() ([]count, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.at) < countedFor {
		return c.counts, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
	defer cancel()
	list, err := db.All[count](ctx, c.pool, counts)
	if err == nil {
		c.counts, c.at = list, time.Now()
	}
	return list, err
}

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("loci_"+name, help, labels, nil)
}

var (
	connections  = describe("database_connections", "Connections of the pool.", "state")
	waits        = describe("database_connection_waits_total", "Times that work waited for a free connection.")
	waitSeconds  = describe("database_connection_wait_seconds_total", "Time that work waited for a free connection.")
	canceled     = describe("database_connection_canceled_waits_total", "Waits for a connection that were given up.")
	up           = describe("database_up", "Whether the database answered, 1 or 0.")
	jobs         = describe("jobs", "Jobs of all servers of the database.", "queue", "state")
	oldest       = describe("jobs_oldest_age_seconds", "Age of the oldest job that waits for a worker.", "queue")
	files        = describe("files", "Files by what is left to do for them.", "status")
	openFiles    = describe("open_files", "Files that agents have open.")
	backlog      = describe("embeddings_waiting", "Texts that wait for their vectors.", "of")
	databaseSize = describe("database_size_bytes", "Size of the database on disk.")
)

// Describe implements prometheus.Collector.
func (*database) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{connections, waits, waitSeconds, canceled, up, jobs, oldest, files, openFiles,
		backlog, databaseSize} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (c *database) Collect(to chan<- prometheus.Metric) {
	send := func(d *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, kind, value, labels...)
	}
	s := c.pool.Stat()
	for state, n := range map[string]int32{"in_use": s.AcquiredConns(), "idle": s.IdleConns(), "max": s.MaxConns()} {
		send(connections, prometheus.GaugeValue, float64(n), state)
	}
	send(waits, prometheus.CounterValue, float64(s.EmptyAcquireCount()))
	send(waitSeconds, prometheus.CounterValue, s.EmptyAcquireWaitTime().Seconds())
	send(canceled, prometheus.CounterValue, float64(s.CanceledAcquireCount()))
	counted, err := c.counted()
	if err != nil {
		send(up, prometheus.GaugeValue, 0)
		return
	}
	send(up, prometheus.GaugeValue, 1)
	for _, n := range counted {
		switch n.Of {
		case "job":
			send(jobs, prometheus.GaugeValue, n.Value, n.Name, n.State)
		case "oldest":
			send(oldest, prometheus.GaugeValue, n.Value, n.Name)
		case "file":
			send(files, prometheus.GaugeValue, n.Value, n.State)
		case "vector":
			send(backlog, prometheus.GaugeValue, n.Value, n.Name)
		case "open":
			send(openFiles, prometheus.GaugeValue, n.Value)
		case "size":
			send(databaseSize, prometheus.GaugeValue, n.Value)
		}
	}
}

// counts counts, over all organizations, jobs, files and open files.
//
// A file's job is scheduled in the virtual time of its queue, which is years ago: it waits since it was made.
const counts = `
	SELECT 'job' AS of, queue AS name, state::text AS state, count(*)::double precision AS value
	FROM river_job WHERE state <> 'completed' GROUP BY queue, state
	UNION ALL
	SELECT 'oldest', queue, '', extract(epoch FROM now() - min(greatest(scheduled_at, created_at)))::double precision
	FROM river_job WHERE state = 'available' GROUP BY queue
	UNION ALL
	SELECT 'file', '', status, count(*)::double precision
	FROM (
	    SELECT CASE WHEN f.error IS NOT NULL THEN 'error'
	                WHEN f.generation < f.wanted_generation THEN 'waiting'
	                ELSE 'parsed' END AS status
	    FROM files f
	    JOIN folders d ON d.org = f.org AND d.key = f.folder_key AND d.deleted_at IS NULL
	) s
	GROUP BY status
	UNION ALL
	SELECT 'vector', 'files', '', coalesce(sum(b.end_ordinal - b.first_ordinal), 0)::double precision
	FROM embed_batches b JOIN embedding_spaces s ON s.id = b.space_id AND s.used_at > now() - interval '5 minutes'
	UNION ALL
	SELECT 'vector', 'messages', '', coalesce(sum(messages - embedded), 0)::double precision
	FROM conversations WHERE unembedded AND deleted_at IS NULL AND embedded_space IS NOT NULL
	UNION ALL
	SELECT 'vector', 'passages', '', count(*)::double precision FROM unembedded_passages WHERE refused IS NULL
	UNION ALL
	SELECT 'vector', 'memory_files', '', count(*)::double precision
	FROM memory_files WHERE unembedded AND deleted_at IS NULL
	UNION ALL
	SELECT 'open', '', '', count(*)::double precision FROM agent_files WHERE is_open
	UNION ALL
	SELECT 'size', '', '', pg_database_size(current_database())::double precision`
