package metrics

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/loci-memory/loci/db/counts"
)

// readTimeout bounds the statements of one read of the metrics.
const readTimeout = 5 * time.Second

// countedFor is how long counts from the database are reused.
const countedFor = 10 * time.Second

// Database adds the metrics of the database and of its connection pool. While the database does not answer,
// loci_database_up is 0, and metrics counted in the database are missing.
func (m *Metrics) Database(pool *pgxpool.Pool) { m.registry.MustRegister(&database{pool: pool}) }

// database collects metrics from the database.
type database struct {
	pool *pgxpool.Pool

	mu     sync.Mutex
	counts []counts.Count
	at     time.Time // when counts was read
}

// counted returns the counts from the database. Only one reader counts at a time.
func (c *database) counted() ([]counts.Count, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.at) < countedFor {
		return c.counts, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
	defer cancel()
	list, err := counts.All(ctx, c.pool)
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
func (c *database) Collect(metrics chan<- prometheus.Metric) {
	send := func(d *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(d, kind, value, labels...)
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
