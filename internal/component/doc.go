// Package component runs logic components: JavaScript functions written by
// customers, in a sandbox. It knows neither HTTP nor SQL; the caller's Host
// performs what a component may do besides computing.
//
// The engine is QuickJS-ng as WebAssembly (package enginewasm), run by wazero
// with fuel in every loop (package enginewasm/fuel). It guarantees, with a test
// for each:
//
//   - Every run starts in the same state: the memory image taken after the
//     component's top level ran. No global, prototype or value is left over from
//     an earlier run, of the same component or of another (contract J2).
//   - A run ends within 50 ms of its deadline, whatever it does, and so does
//     compiling. Cancelling the context ends it, too.
//   - A run has at most 32 MiB of memory, and returns it (contract X6).
//   - There is no network, file, environment, timer or import. Data leaves a run
//     only as the returned JSON, on the console, and through Host.
//   - A tenant can use only a part of the pool's instances at a time. When its
//     part or the pool is busy, a run waits a little and is then OVERLOADED
//     (contract X7).
//
// An Engine compiles sources to Programs (a memory image each, some 150 KB). A
// Program runs in any of the engine's instances, and is safe for concurrent
// use.
package component
