package loop

import (
	"cmp"
	"slices"
	"strings"

	"github.com/loci-memory/loci/recall"
)

// deniedByClient begins the result of a call that the client denied, in Letta's words. wasDenied began it in older
// logs.
const (
	deniedByClient = "Error: request to call tool denied. User reason:"
	wasDenied      = "The request to call the tool was denied."
)

// noReasons stand in the result of a denied call if the client gave no reason: Letta's word, and that of older logs.
var noReasons = []string{"None", "No reason was given."}

// denial returns the result of a call that the client denied for a reason, which may be empty.
func denial(reason string) string { return deniedByClient + " " + cmp.Or(reason, noReasons[0]) }

func isDenied(result recall.Part) bool {
	return result.IsError && (result.Approval == recall.Denied || strings.HasPrefix(result.Text, deniedByClient) ||
		strings.HasPrefix(result.Text, wasDenied))
}

// DenialReason returns the client's reason for a denial, read from the text of the call's result; empty if it has none.
func DenialReason(result string) string {
	for _, begins := range []string{deniedByClient, wasDenied} {
		reason, says := strings.CutPrefix(result, begins)
		if reason = strings.TrimSpace(reason); says && !slices.Contains(noReasons, reason) {
			return reason
		}
	}
	return ""
}
