package agent

import (
	"slices"

	"github.com/loci-memory/loci/db"
)

// The modes of the gateway, which programs reach with their own API.
const (
	GatewayObserve  = "observe"  // stores, changes nothing
	GatewayRemember = "remember" // also recalls
	GatewayManage   = "manage"   // also keeps the window
)

// GatewayModes lists the modes.
var GatewayModes = []string{GatewayObserve, GatewayRemember, GatewayManage}

// GatewaySettings say what the gateway does with the requests of programs that speak as an agent.
type GatewaySettings struct {
	Mode string `json:"mode,omitempty" required:"false" enum:"observe,remember,manage" doc:"Of requests that name none."`

	Tools []string `json:"tools,omitempty" required:"false" nullable:"false" doc:"Of the agent; Loci runs their calls."`
}

// maxGatewayTools bounds the tools that the gateway offers.
const maxGatewayTools = 64

// check returns ErrInvalid for the first setting with a wrong value.
func (s GatewaySettings) check() error {
	if s.Mode != "" && !slices.Contains(GatewayModes, s.Mode) {
		return db.Invalid("gateway.mode is %q; it must be one of observe, remember, manage", db.Short(s.Mode))
	}
	if len(s.Tools) > maxGatewayTools {
		return db.Invalid("gateway.tools has %d names; it may have %d", len(s.Tools), maxGatewayTools)
	}
	for _, name := range s.Tools {
		if err := db.CheckUTF8("gateway.tools", name); err != nil {
			return err
		}
	}
	return nil
}

// Offers returns the names of the tools that are offered; nil without settings.
func (s *GatewaySettings) Offers() []string {
	if s == nil {
		return nil
	}
	return s.Tools
}
