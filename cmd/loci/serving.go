package main

import (
	"encoding/json"
	"fmt"
	"time"
)

// serving holds the settings of a server.
type serving struct {
	database
	Addr           string `env:"LOCI_ADDR" default:"127.0.0.1:8283" help:"Address to listen on."`
	MetricsAddr    string `env:"LOCI_METRICS_ADDR" help:"Address that serves /metrics without a key: 127.0.0.1:9283."`
	APIKey         secret `name:"api-key" env:"LOCI_API_KEY" help:"An API key to register for the default organization."`
	Reopen         bool   `env:"LOCI_REOPEN" help:"Answer this machine without a key again, if every key is revoked."`
	MaxUploadBytes int64  `env:"LOCI_MAX_UPLOAD_BYTES" default:"52428800" help:"Largest upload, in bytes."`
	MaxRuns        int    `env:"LOCI_MAX_RUNS" default:"100" help:"Runs of agents at the same time, per organization."`
	MaxImportBytes int64  `env:"LOCI_MAX_IMPORT_BYTES" default:"1073741824" help:"Largest agent file, in bytes."`
	MinBodyRate    int64  `env:"LOCI_MIN_BODY_RATE" default:"65536" help:"Bytes a second of bodies above 1 MiB; 0: any."`
	LogLevel       string `env:"LOCI_LOG_LEVEL" default:"info" help:"debug, info, warn or error."`
	LogFormat      string `env:"LOCI_LOG_FORMAT" default:"text" help:"text or json."`
	RedactEntropy  bool   `env:"LOCI_REDACT_ENTROPY" help:"Redact random-looking strings, hashes and ids in messages."`

	CORSOrigins []string `name:"cors-origins" env:"LOCI_CORS_ORIGINS" help:"Origins whose pages may call it; * for all."`
	Policy      string   `env:"LOCI_POLICY" help:"How windows are kept where nobody says: a policy's name, or its JSON."`

	RequestTimeout time.Duration `hidden:"" default:"30s" help:"How long a request may take that streams nothing."`
	StopTimeout    time.Duration `hidden:"" default:"8s" help:"For requests and jobs to end. Containers are given 10 s."`
	vectors
	embedding     `prefix:"embedding-" envprefix:"LOCI_EMBEDDING_"`
	nextEmbedding `prefix:"embedding-next-" envprefix:"LOCI_EMBEDDING_NEXT_"`
	reranking
	programs
	language
	anthropic
	upstreams
	keyLimits `prefix:"key-requests-"`
}

// bodyRate returns LOCI_MIN_BODY_RATE as the Rate of rest.BodyPace, where a negative number means none.
func (c *serving) bodyRate() int64 {
	if c.MinBodyRate == 0 {
		return -1
	}
	return c.MinBodyRate
}

// policy returns LOCI_POLICY as JSON; nil if it is not set.
func (c *serving) policy() json.RawMessage {
	if c.Policy == "" || json.Valid([]byte(c.Policy)) {
		return json.RawMessage(c.Policy)
	}
	return fmt.Appendf(nil, "%q", c.Policy)
}
