// Package component runs logic components: JavaScript functions that customers
// wrote, in a sandbox. It knows neither HTTP nor SQL; what a component may do
// beyond computing, the caller's Host does for it.
//
// The engine is QuickJS-ng as WebAssembly (package enginewasm), run by wazero
// with fuel in every loop (package enginewasm/fuel). The promises, each with a test:
//
//   - Every run starts in the same clean state: the memory image taken after the
//     component's top level ran. Nothing survives from run to run, of one
//     component or of two: no globals, prototypes or values (contract J2).
//   - A run ends within 50 ms of its deadline, whatever it does, and so does
//     compiling. A cancelled context ends it as well.
//   - A run has at most 32 MiB for everything, and gives it back (contract X6).
//   - No network, files, environment, timers, imports. The only ways out are the
//     returned JSON, the console, and Host.
//   - A tenant can hold only so many of the pool's instances at once; when it or
//     the pool is busy, a run waits a little and then is OVERLOADED (contract X7).
//
// An Engine compiles sources to Programs (a memory image each, some 150 KB). A
// Program runs in any of the engine's instances, and is safe for concurrent
// use.
package component
