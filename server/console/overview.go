package console

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

func overviewRoutes() map[string]handler { return map[string]handler{"GET {$}": overview} }

// overview shows what the server holds, and what needs a person's attention.
func overview(v *visit) error {
	p := page{Title: "Overview", Tab: "Overview", Sub: "What this server holds, and what needs you."}
	p.Cards = []card{
		{Name: "overview-agents", Title: "Agents", Width: "w3 figure", Live: "15s", Load: loaded(figureCard, agentsFigure)},
		{Name: "overview-files", Title: "Files", Width: "w3 figure", Live: "15s", Load: loaded(figureCard, filesFigure)},
	}
	if v.caller.Operator {
		p.Cards = append(p.Cards,
			card{Name: "overview-queue", Title: "Waiting work", Width: "w3 figure", Live: "5s",
				Load: loaded(figureCard, queueFigure)},
			card{Name: "overview-disk", Title: "Database", Width: "w3 figure", Live: "15s",
				Load: loaded(figureCard, diskFigure)})
	} else {
		p.Cards = append(p.Cards,
			card{Name: "overview-runs", Title: "Runs at work", Width: "w3 figure", Live: "5s",
				Load: loaded(figureCard, runsFigure)},
			card{Name: "overview-archives", Title: "Archives", Width: "w3 figure", Live: "15s",
				Load: loaded(figureCard, archivesFigure)})
	}
	p.Cards = append(p.Cards,
		card{Name: "overview-needs", Title: "Needs you", Width: "w8", Live: "10s", Load: loaded(needsCard, needs)},
		card{Name: "overview-search", Title: "Search ranks by", Width: "w4", Load: loaded(overviewSearchCard, spaces)})
	if v.caller.Operator {
		p.Cards = append(p.Cards,
			card{Name: "overview-latencies", Title: "How long things take", Width: "w7", Live: "15s",
				Load: loaded(overviewLatenciesCard, latencies)},
			card{Name: "overview-queues", Title: "Queues", Width: "w5", Live: "5s",
				Load: loaded(overviewQueuesCard, queues)})
	}
	p.Cards = append(p.Cards, card{Name: "overview-fullness", Title: "Agents by fullness", Width: "w12",
		Load: loaded(overviewFullnessCard, fullness)})
	return v.show(p)
}

// figure is a number with its context.
type figure struct{ Value, Against, URL string }

func agentsFigure(v *visit) (figure, error) {
	var all int
	if err := v.get("/v1/agents/count?show_hidden_agents=true", &all); err != nil {
		return figure{}, err
	}
	var visible int
	err := v.get("/v1/agents/count", &visible)
	context := "of this organization"
	if all > visible {
		context = number(all-visible) + " more are hidden"
	}
	return figure{number(visible), context, base + "agents"}, err
}

func filesFigure(v *visit) (figure, error) {
	var all struct {
		Folders int   `json:"total_sources"`
		Files   int   `json:"total_files"`
		Bytes   int64 `json:"total_size"`
	}
	err := v.get("/v1/folders/metadata", &all)
	context := size(all.Bytes) + " in " + plural(all.Folders, "folder", "folders")
	return figure{number(all.Files), context, base + "files"}, err
}

func runsFigure(v *visit) (figure, error) {
	var active []struct{ ID string }
	err := v.get("/v1/runs/active", &active)
	return figure{number(len(active)), "runs of agents, right now", base + "jobs"}, err
}

func archivesFigure(v *visit) (figure, error) {
	var all []struct{ ID string }
	err := v.get("/v1/archives?limit=1000", &all)
	value := number(len(all))
	if len(all) == 1000 {
		value += " or more"
	}
	return figure{value, "of this organization", base + "archival"}, err
}

// metrics are the server's metrics by name.
type metrics map[string]*dto.MetricFamily

func (v *visit) metrics() (metrics, error) {
	var text []byte
	if err := v.get("/metrics", &text); err != nil {
		return nil, err
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(bytes.NewReader(text))
}

// value returns the sum of a gauge or a counter over all series with these labels.
func (m metrics) value(name string, labels map[string]string) (sum float64, found bool) {
	for _, series := range m[name].GetMetric() {
		if matches(series, labels) {
			sum += series.GetGauge().GetValue() + series.GetCounter().GetValue() + series.GetUntyped().GetValue()
			found = true
		}
	}
	return sum, found
}

func matches(series *dto.Metric, labels map[string]string) bool {
	for name, value := range labels {
		if label(series, name) != value {
			return false
		}
	}
	return true
}

func label(series *dto.Metric, name string) string {
	for _, l := range series.GetLabel() {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}

// waitingStates are the states of jobs that neither run nor have ended.
var waitingStates = []string{"available", "scheduled", "retryable", "pending"}

func queueFigure(v *visit) (figure, error) {
	m, err := v.metrics()
	if err != nil {
		return figure{}, err
	}
	waiting, oldest := 0.0, 0.0
	for _, state := range waitingStates {
		n, _ := m.value("loci_jobs", map[string]string{"state": state})
		waiting += n
	}
	for _, series := range m["loci_jobs_oldest_age_seconds"].GetMetric() {
		oldest = max(oldest, series.GetGauge().GetValue())
	}
	context := "nothing waits"
	if waiting > 0 {
		context = "jobs; the oldest that is due waits " + span(time.Duration(oldest*float64(time.Second)))
	}
	return figure{number(waiting), context, base + "jobs"}, nil
}

func diskFigure(v *visit) (figure, error) {
	m, err := v.metrics()
	if err != nil {
		return figure{}, err
	}
	used, known := m.value("loci_database_size_bytes", nil)
	if !known {
		return figure{Value: "unknown", Against: "the database does not answer"}, nil
	}
	busy, _ := m.value("loci_database_connections", map[string]string{"state": "in_use"})
	maximum, _ := m.value("loci_database_connections", map[string]string{"state": "max"})
	context := fmt.Sprintf("on disk · %s of %s connections busy", number(busy), number(maximum))
	return figure{Value: size(used), Against: context}, nil
}

// need is something that a person should look at.
type need struct {
	What, URL, Why string
	At             time.Time
	Retry          string // where to send a retry; empty if there is none
}

func needs(v *visit) ([]need, error) {
	list, err := failedFiles(v, 10)
	if err != nil {
		return nil, err
	}
	var runs []run
	if err := v.get("/v1/runs?statuses=failed&limit=5&order=desc", &runs); err != nil {
		return nil, err
	}
	for _, r := range runs {
		list = append(list, need{What: "Run of an agent", URL: base + "agents/" + r.AgentID, Why: r.Why(), At: r.CreatedAt})
	}
	return list, nil
}

func failedFiles(v *visit, limit int) (list []need, err error) {
	var failed []file
	if err := v.get(fmt.Sprintf("/v1/files?status=error&limit=%d", limit), &failed); err != nil {
		return nil, err
	}
	for _, f := range failed {
		address := base + "folders/" + f.FolderID + "/files/" + f.ID
		list = append(list, need{What: f.Name, URL: address, Why: f.Error, At: f.UpdatedAt, Retry: address + "/retry"})
	}
	return list, nil
}

// latency says how long a kind of work takes.
type latency struct {
	What        string
	Count       int
	Median, P95 float64 // seconds
}

// timed are the histograms to show, each with the label that distinguishes its kinds.
var timed = []struct{ metric, label, what string }{
	{"loci_search_duration_seconds", "kind", "Search in "},
	{"loci_tool_call_duration_seconds", "tool", "Tool "},
	{"loci_model_call_duration_seconds", "use", "Language model, "},
	{"loci_embedding_call_duration_seconds", "use", "Embeddings, "},
	{"loci_compaction_duration_seconds", "how", "Compaction, "},
}

func latencies(v *visit) ([]latency, error) {
	m, err := v.metrics()
	if err != nil {
		return nil, err
	}
	var list []latency
	for _, t := range timed {
		for _, series := range m[t.metric].GetMetric() {
			h := series.GetHistogram()
			count := int(h.GetSampleCount()) //nolint:gosec // it fits
			list = append(list, latency{What: t.what + label(series, t.label), Count: count,
				Median: quantile(h, 0.5), P95: quantile(h, 0.95)})
		}
	}
	slices.SortStableFunc(list, func(a, b latency) int { return cmp.Compare(b.Count, a.Count) })
	return list[:min(len(list), 10)], nil
}

// quantile estimates a quantile from a histogram's buckets, as Prometheus does.
func quantile(h *dto.Histogram, q float64) float64 {
	rank, below, lower := q*float64(h.GetSampleCount()), 0.0, 0.0
	for _, b := range h.GetBucket() {
		count, upper := float64(b.GetCumulativeCount()), b.GetUpperBound()
		if math.IsInf(upper, 1) {
			break
		}
		if count >= rank {
			if count == below {
				return upper
			}
			return lower + (upper-lower)*(rank-below)/(count-below)
		}
		below, lower = count, upper
	}
	return lower
}

// queueView shows the work in a queue.
type queueView struct {
	Name                    string
	Running, Waiting, Retry int
	Discarded               int
	Oldest                  float64 // seconds
}

func queues(v *visit) ([]queueView, error) {
	m, err := v.metrics()
	if err != nil {
		return nil, err
	}
	byName := map[string]*queueView{}
	for _, series := range m["loci_jobs"].GetMetric() {
		name, n := label(series, "queue"), int(series.GetGauge().GetValue())
		q := byName[name]
		if q == nil {
			q = &queueView{Name: name}
			byName[name] = q
		}
		switch state := label(series, "state"); state {
		case "running":
			q.Running += n
		case "retryable":
			q.Retry += n
		case "discarded":
			q.Discarded += n
		default:
			if slices.Contains(waitingStates, state) {
				q.Waiting += n
			}
		}
	}
	for _, series := range m["loci_jobs_oldest_age_seconds"].GetMetric() {
		if q := byName[label(series, "queue")]; q != nil {
			q.Oldest = series.GetGauge().GetValue()
		}
	}
	list := []queueView{}
	for _, q := range byName {
		list = append(list, *q)
	}
	slices.SortFunc(list, func(a, b queueView) int { return cmp.Compare(a.Name, b.Name) })
	return list, nil
}

// space shows the state of search by meaning.
type space struct {
	Model   string
	Dim     int
	Handle  string
	Waiting int64   // texts
	Refused int64   // texts
	Left    float64 // seconds
}

// Remaining says how long the waiting texts will still take; empty if unknown.
func (s space) Remaining() string {
	if s.Left == 0 {
		return ""
	}
	return ", about " + took(s.Left)
}

func spaces(v *visit) ([]space, error) {
	var models []struct {
		Handle string `json:"handle"`
		Model  string `json:"embedding_model"`
		Dim    int    `json:"embedding_dim"`
	}
	if err := v.get("/v1/models/embedding", &models); err != nil {
		return nil, err
	}
	var progress struct {
		Waiting, Refused int64
		Left             float64 `json:"seconds_left"`
	}
	if err := v.get("/v1/embeddings/progress", &progress); err != nil {
		return nil, err
	}
	var list []space
	for _, m := range models {
		list = append(list, space{Model: m.Model, Dim: m.Dim, Handle: m.Handle, Waiting: progress.Waiting,
			Refused: progress.Refused, Left: progress.Left})
	}
	return list, nil
}

// fullView is an agent with what fills its window.
type fullView struct {
	agent
	Window  window
	Problem string
}

// fullness shows the agents that changed last, the fullest first.
func fullness(v *visit) ([]fullView, error) {
	var agents []agent
	if err := v.get("/v1/agents?limit=8&order=desc&order_by=updated_at", &agents); err != nil {
		return nil, err
	}
	var list []fullView
	for _, a := range agents {
		view := fullView{agent: a}
		w, err := v.window(a.ID, "")
		if err != nil && statusOf(err) == 0 {
			return nil, err
		} else if err != nil {
			view.Problem = err.Error()
		}
		view.Window = w
		list = append(list, view)
	}
	slices.SortStableFunc(list, func(a, b fullView) int { return cmp.Compare(b.Window.Share(), a.Window.Share()) })
	return list, nil
}
