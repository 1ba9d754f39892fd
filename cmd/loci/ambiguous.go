package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"regexp"
	"time"

	"github.com/loci-memory/loci/server/rest"
)

// A request with both a Content-Length and a Transfer-Encoding has two possible ends. If a proxy assumes one and this
// server the other, one of them takes the bytes in between for another request (request smuggling). net/http drops the
// length before a handler sees it, so connections keep the head of each request.

var (
	endOfHead     = regexp.MustCompile(`\n\r?\n`)
	contentLength = regexp.MustCompile(`(?i)\ncontent-length[ \t]*:`)
)

// refuseAmbiguous refuses requests with both headers. It also refuses pipelined requests with a Transfer-Encoding:
// their head is not kept, because it was read before the previous request was answered.
func refuseAmbiguous(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, ok := r.Context().Value(connKey{}).(*headConn)
		if !ok {
			next.ServeHTTP(w, r)
			return
		}
		head := conn.begin()
		defer conn.end()
		if len(r.TransferEncoding) > 0 && !isUnambiguous(head, r) {
			w.Header().Set("Connection", "close")
			w.Header().Set("Content-Type", rest.JSON)
			w.WriteHeader(http.StatusBadRequest)
			// net/http reads on this long, so that a client that sends everything before it reads still sees the answer.
			_ = conn.SetReadDeadline(time.Now().Add(conn.pace.Rest))
			_ = json.NewEncoder(w).Encode(rest.Malformed(
				"The request has both a Content-Length and a Transfer-Encoding; send one"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

func isUnambiguous(head []byte, r *http.Request) bool {
	end := endOfHead.FindIndex(head)
	return end != nil && bytes.HasPrefix(head, []byte(r.Method+" "+r.RequestURI+" ")) &&
		!contentLength.Match(head[:end[1]])
}
