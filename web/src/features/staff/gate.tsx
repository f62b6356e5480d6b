import { useEffect, type ReactNode } from 'react'
import { Mark } from '../../ui/arch'

/** Gate is the frame of the pages before the session: the form at the left, the gatehouse at the right. */
export function Gate({ title, lead, children, foot }: { title: string; lead?: ReactNode; children: ReactNode; foot?: ReactNode }) {
  useEffect(() => { document.title = `${title} · Gatehouse` }, [title])
  return (
    <div className="si">
      <div className="sileft">
        <div className="brand"><Mark /><span>Gatehouse</span></div>
        <main className="siform">
          <h1>{title}</h1>
          {lead && <p className="second lead">{lead}</p>}
          {children}
        </main>
        <footer className="muted s12">{foot}</footer>
      </div>
      <Picture />
    </div>
  )
}

/** The wall and its gate, half open. */
function Picture() {
  return (
    <div className="sipicture" aria-hidden="true">
      <svg viewBox="0 0 800 900" preserveAspectRatio="xMidYMax slice">
      <rect className="sky" width="800" height="900"/>
      <path className="wall" d="M-20 960V330H-20V270H56V330H120V270H196V330H260V270H336V330H400V270H476V330H540V270H616V330H680V270H756V330H820V270H896V330H840V960z"/>
      <g className="brick">
      <rect x="40" y="532" width="52" height="22" rx="2"/>
      <rect x="610" y="382" width="52" height="22" rx="2"/>
      <rect x="130" y="382" width="52" height="22" rx="2"/>
      <rect x="-20" y="772" width="52" height="22" rx="2"/>
      <rect x="70" y="502" width="52" height="22" rx="2"/>
      <rect x="-20" y="652" width="52" height="22" rx="2"/>
      <rect x="700" y="532" width="52" height="22" rx="2"/>
      <rect x="-20" y="892" width="52" height="22" rx="2"/>
      <rect x="160" y="352" width="52" height="22" rx="2"/>
      <rect x="730" y="502" width="52" height="22" rx="2"/>
      <rect x="760" y="772" width="52" height="22" rx="2"/>
      <rect x="-20" y="592" width="52" height="22" rx="2"/>
      <rect x="40" y="772" width="52" height="22" rx="2"/>
      <rect x="520" y="352" width="52" height="22" rx="2"/>
      <rect x="790" y="502" width="52" height="22" rx="2"/>
      <rect x="100" y="412" width="52" height="22" rx="2"/>
      <rect x="-20" y="892" width="52" height="22" rx="2"/>
      <rect x="760" y="532" width="52" height="22" rx="2"/>
      <rect x="-20" y="832" width="52" height="22" rx="2"/>
      <rect x="40" y="652" width="52" height="22" rx="2"/>
      <rect x="10" y="382" width="52" height="22" rx="2"/>
      <rect x="70" y="382" width="52" height="22" rx="2"/>
      <rect x="730" y="682" width="52" height="22" rx="2"/>
      </g>
      <path className="o1" d="M118 960V650a282 282 0 0 1 564 0V960z"/>
      <path className="o2" d="M154 960V650a246 246 0 0 1 492 0V960z"/>
      <path className="in" d="M192 960V650a208 208 0 0 1 416 0V960z"/>
      <clipPath id="cp">
      <path d="M192 960V650a208 208 0 0 1 416 0V960z"/>
      </clipPath>
      <g clipPath="url(#cp)">
      <g className="led">
      <path d="M192 720H608"/>
      <rect x="226" y="734" width="62" height="7" rx="1.5"/>
      <rect x="328" y="734" width="96" height="7" rx="1.5"/>
      <rect x="534" y="734" width="40" height="7" rx="1.5"/>
      <path d="M192 756H608"/>
      <rect x="226" y="770" width="48" height="7" rx="1.5"/>
      <rect x="328" y="770" width="120" height="7" rx="1.5"/>
      <rect x="522" y="770" width="52" height="7" rx="1.5"/>
      <path d="M192 792H608"/>
      <rect x="226" y="806" width="70" height="7" rx="1.5"/>
      <rect x="328" y="806" width="84" height="7" rx="1.5"/>
      <rect x="540" y="806" width="34" height="7" rx="1.5"/>
      <path d="M192 828H608"/>
      <rect x="226" y="842" width="56" height="7" rx="1.5"/>
      <rect x="328" y="842" width="104" height="7" rx="1.5"/>
      <rect x="528" y="842" width="46" height="7" rx="1.5"/>
      <path d="M192 864H608"/>
      <rect x="226" y="878" width="62" height="7" rx="1.5"/>
      <rect x="328" y="878" width="90" height="7" rx="1.5"/>
      <rect x="534" y="878" width="40" height="7" rx="1.5"/>
      </g>
      <g className="bars">
      <path d="M208 420V676"/>
      <path className="tipb" d="M202 672h12l-6 22z"/>
      <path d="M256 420V676"/>
      <path className="tipb" d="M250 672h12l-6 22z"/>
      <path d="M304 420V676"/>
      <path className="tipb" d="M298 672h12l-6 22z"/>
      <path d="M352 420V676"/>
      <path className="tipb" d="M346 672h12l-6 22z"/>
      <path d="M400 420V676"/>
      <path className="tipb" d="M394 672h12l-6 22z"/>
      <path d="M448 420V676"/>
      <path className="tipb" d="M442 672h12l-6 22z"/>
      <path d="M496 420V676"/>
      <path className="tipb" d="M490 672h12l-6 22z"/>
      <path d="M544 420V676"/>
      <path className="tipb" d="M538 672h12l-6 22z"/>
      <path d="M592 420V676"/>
      <path className="tipb" d="M586 672h12l-6 22z"/>
      <path d="M170 486H630"/>
      <path d="M170 546H630"/>
      <path d="M170 606H630"/>
      <path d="M170 666H630"/>
      </g>
      </g>
      </svg>
    </div>
  )
}
