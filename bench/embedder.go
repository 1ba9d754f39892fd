package main

import (
	"encoding/base64"
	"encoding/json"
	"hash/fnv"
	"math"
	"net/http"
	"net/http/httptest"
	"strconv"
)

// embedDimension is the dimension of the fake endpoint's vectors.
const embedDimension = 384

// newEmbedder starts an OpenAI-compatible embeddings endpoint that answers immediately. A text's vector depends on its
// hash. The caller must close it.
func newEmbedder() *httptest.Server { return httptest.NewServer(http.HandlerFunc(embeddings)) }

func embeddings(w http.ResponseWriter, r *http.Request) {
	var ask struct {
		Input  []string `json:"input"`
		Format string   `json:"encoding_format"`
	}
	if err := json.NewDecoder(r.Body).Decode(&ask); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	out := append(make([]byte, 0, len(ask.Input)*2400), `{"object":"list","model":"fake","data":[`...)
	for i, text := range ask.Input {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, `{"object":"embedding","index":`...)
		out = append(strconv.AppendInt(out, int64(i), 10), `,"embedding":`...)
		out = append(appendVector(out, text, ask.Format == "base64"), '}')
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(out,
		`],"usage":{"prompt_tokens":1,"total_tokens":1}}`...)) // a client that is gone needs no answer
}

// appendVector appends a text's vector as JSON. Its numbers have only three digits, because the endpoint itself is not
// measured.
func appendVector(out []byte, text string, packed bool) []byte {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(text)) // never fails
	state := hash.Sum64() | 1
	raw := make([]byte, 0, 4*embedDimension)
	for i := range embedDimension {
		state ^= state << 13
		state ^= state >> 7
		state ^= state << 17
		value := int64(state>>40%1999) - 999
		if packed {
			bits := math.Float32bits(float32(value) / 1000)
			raw = append(raw, byte(bits), byte(bits>>8), byte(bits>>16), byte(bits>>24))
			continue
		}
		out = append(out, ",["[b2i(i == 0)])
		out = append(strconv.AppendInt(out, value, 10), "e-3"...)
	}
	if packed {
		return append(base64.StdEncoding.AppendEncode(append(out, '"'), raw), '"')
	}
	return append(out, ']')
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
